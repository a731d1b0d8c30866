/**
 * Repeats of a mutation: a request with an idempotency key (header `Idempotency-Key`, or `idempotencyKey` in the input,
 * which comes first) has its effect once; within 24 hours the same viewer, key and body get the first answer again.
 *
 * - The key is claimed, the effect made and the answer kept in one statement, so in one transaction: a repeat in parallel
 *   waits for it, one after a crash finds both or neither. What failed is not kept and may be tried again.
 * - The body is document, variables and operation name as they were sent; another body under the key is refused.
 * - Each field of a request has a place under the key, by its order in the operation.
 * - Kept is the row that the field answered, not what the request selected of it or read through it: the record's own
 *   fields come back as they were, records around it as they are now and as far as the viewer may see them.
 * - Kept rows are encrypted with the key, of which only a SHA-256 is kept, because a row can hold what is shown once, such as
 *   an access token; the body is kept as an HMAC under the key, because it can hold a password.
 * - A dry run looks at no key: it is carried out each time.
 * - Where a field has the kept answer, claim_answer raises a notice (OperationWork.noticed), and the request is answered with the header `Idempotency-Replayed: true`.
 */
import { createHmac } from "node:crypto";
import { context, lambda, operationPlan, type ExecutableStep } from "postgraphile/grafast";
import type { PgCodec } from "postgraphile/@dataplan/pg";
import { sql, type SQL } from "postgraphile/pg-sql2";
import { workOf } from "../admission/operationWork.ts";
import { CodedError } from "../base/errors.ts";

/** What the context of a request tells about repeats. */
export interface IdempotencyFacts {
  /** The header `Idempotency-Key` as it was sent. */
  readonly header: string | undefined;
  /** What the request asks, in a form that is equal for equal requests. */
  body(): string;
}

declare global {
  namespace Grafast {
    interface Context {
      /** Undefined for an operation that did not come over HTTP: such a one is not repeated. */
      repeats?: IdempotencyFacts;
    }
  }
}

/** The member of every input. */
export const idempotencyField = {
  name: "idempotencyKey",
  description:
    "Any string that the client generates for this request. A retry with the same key and body within 24 hours returns the first response and has no second effect.",
} as const;

const KEY = /^[\x20-\x7e]{1,255}$/;

function keyOf(
  input: Record<string, unknown> | null | undefined,
  facts: IdempotencyFacts,
): string | undefined {
  const member = input?.[idempotencyField.name];
  const [key, field] =
    typeof member === "string" ? [member, idempotencyField.name] : [facts.header, "Idempotency-Key"];
  if (key === undefined) return undefined;
  if (KEY.test(key)) return key;
  throw new CodedError("BAD_USER_INPUT", "An idempotency key has 1 to 255 printable ASCII characters.", {
    field,
  });
}

/** Key and body of a request with a key; undefined without one. */
export function idempotencyIn(
  input: Record<string, unknown>,
  { repeats, pgSettings }: { repeats?: IdempotencyFacts; pgSettings?: Grafast.Context["pgSettings"] },
): { key: string; body: string } | undefined {
  // A dry run neither gives what was kept under the key nor takes it.
  const key = repeats && !workOf(pgSettings)?.heldTransaction?.isDry && keyOf(input, repeats);
  if (!key) return undefined;
  return { key, body: createHmac("sha256", key).update(repeats!.body()).digest("hex") };
}

/** How many mutation fields a plan has so far; a document is planned field by field, in its order. */
const places = new WeakMap<object, number>();

/**
 * What claim_answer and keep_answer take, undefined without a key. Call it once per mutation field, while it is planned.
 * @param becomes the column of the answer whose user the operation signs in
 */
export function idempotencyOf($input: ExecutableStep, becomes: string | undefined): ExecutableStep {
  const plan = operationPlan();
  const place = places.get(plan) ?? 0;
  places.set(plan, place + 1);
  return lambda([$input, context()], ([input, request]) => {
    const repeat = idempotencyIn(input, request);
    return repeat && { ...repeat, place: String(place), ...(becomes === undefined ? {} : { becomes }) };
  });
}

/** The call, but only where the key is new; otherwise what the call returned then. One row, like the call itself. */
export function onlyOnce(codec: PgCodec, repeat: SQL, call: SQL): SQL {
  const answer = codec.attributes ? sql`(once.r).*` : sql`once.r`;
  // OFFSET 0 keeps the planner from evaluating the call once per column.
  return sql`(select ${answer} from (
    select case when claim.answer is null then app_hidden.keep_answer(claim.id, given.repeat, ${call})
      else (select kept.r from jsonb_to_record(claim.answer) as kept (r ${codec.sqlType})) end as r
    from (select ${repeat} as repeat) as given cross join lateral app_hidden.claim_answer(given.repeat) as claim offset 0
  ) as once)`;
}
