/** The SQL statement of an operation: one call, in a transaction of its own. */
import type { ExecutableStep } from "postgraphile/grafast";
import { listOfCodec, pgSelect, TYPES, type PgCodec } from "postgraphile/@dataplan/pg";
import { sql, type SQL } from "postgraphile/pg-sql2";
import type { AnyResource } from "../schema/recordTables.ts";
import { onlyOnce } from "./idempotency.ts";
import type { AnyType } from "../schema/stackTypes.ts";

interface CallParameter {
  name?: string | null;
  codec: PgCodec;
  required?: boolean;
  notNull?: boolean;
  optional?: boolean;
}

/** What pg gives the FROM of a function: a value by its name, or by its place where nothing before was omitted. */
interface Digest {
  placeholder: SQL;
  name?: string;
  position?: number;
}

const repeatParameter: CallParameter = { name: "$repeat", codec: TYPES.jsonb, optional: true };

/**
 * Selects from the row that a call returns, or from the rows of the array that it returns.
 * @param of.call makes the call from the arguments that were given, each with the name of its parameter
 * @param of.$repeat a value of `idempotencyOf`; with one, a repeated request gets the first answer without a second call
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
  // Last: an optional value that is undefined is not among the digests.
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
      return repeat === undefined ? call : onlyOnce(resource.codec, repeat, call);
    return sql`unnest(${repeat === undefined ? call : onlyOnce(listOfCodec(resource.codec), repeat, call)})`;
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
