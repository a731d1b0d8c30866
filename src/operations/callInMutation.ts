/** SQL statement of a mutation: one function call, in a transaction of its own. */
import type { ExecutableStep } from "postgraphile/grafast";
import { listOfCodec, pgSelect, TYPES, type PgCodec } from "postgraphile/@dataplan/pg";
import { sql, type SQL } from "postgraphile/pg-sql2";
import type { AnyResource } from "../schema/recordTables.ts";
import { withIdempotencyKey } from "./idempotency.ts";
import type { AnyType } from "../schema/stackTypes.ts";

interface CallParameter {
  name?: string | null;
  codec: PgCodec;
  required?: boolean;
  notNull?: boolean;
  optional?: boolean;
}

/** Argument format of pg for a function in FROM: by name, or by position if no earlier argument was omitted. */
interface Digest {
  placeholder: SQL;
  name?: string;
  position?: number;
}

const repeatParameter: CallParameter = { name: "$repeat", codec: TYPES.jsonb, optional: true };

/**
 * Selects from the row that a call returns, or from the rows of the returned array.
 * @param of.call builds the call from the given arguments, each with its parameter name
 * @param of.$repeat a value of `idempotencyOf`; with one, a repeated request gets the first response without a second
 * call
 */
export function callInMutation(
  resource: AnyResource,
  of: {
    parameters: readonly CallParameter[];
    steps: readonly ExecutableStep[];
    call(given: [name: string, value: SQL][]): SQL;
    $repeat: ExecutableStep;
  },
) {
  // Last: an optional undefined value is not part of the digests.
  const parameters = [...of.parameters, repeatParameter];
  const steps = [...of.steps, of.$repeat];
  const from = (...digests: Digest[]): SQL => {
    const given = digests.map(({ name, position, placeholder }): [string, SQL] => [
      name ?? parameters[position!]!.name!,
      placeholder,
    ]);
    const repeat = given.find(([name]) => name === repeatParameter.name)?.[1];
    const call = of.call(given.filter(([name]) => name !== repeatParameter.name));
    if (resource.isUnique || !resource.parameters)
      return repeat === undefined ? call : withIdempotencyKey(resource.codec, repeat, call);
    return sql`unnest(${repeat === undefined ? call : withIdempotencyKey(listOfCodec(resource.codec), repeat, call)})`;
  };
  const $select = pgSelect({
    resource,
    identifiers: [],
    parameters: parameters as AnyType,
    args: parameters.map(({ name, codec }, index) => ({
      name,
      step: steps[index],
      pgCodec: codec,
    })) as AnyType,
    from: from,
    mode: "mutation",
    joinAsLateral: true,
  });
  return resource.isUnique || !resource.parameters ? $select.single() : $select;
}
