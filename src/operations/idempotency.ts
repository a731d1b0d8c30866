/**
 * Idempotency of mutations: a request with an idempotency key (header `Idempotency-Key`, or `idempotencyKey` in the
 * input, which takes precedence) takes effect once; within 24 hours the same viewer, key and body get the first
 * response again.
 *
 * - Claiming the key, the effect and storing the response are one statement, so one transaction: a concurrent retry
 *   waits for it, one after a crash finds both or neither. Failures are not stored and can be retried.
 * - The body consists of document, variables and operation name as sent; another body under the key is refused.
 * - Each field of a request has a place under the key, by its order in the operation.
 * - What is stored is the row that the field returned, not the selection of the request: the record's own fields are
 *   returned as they were, related records as they are now and as far as the viewer may see them.
 * - Stored rows are encrypted with the key, of which only a SHA-256 is stored, because a row can contain secrets that
 *   are shown once, such as an access token; the body is stored as an HMAC under the key, because it can contain a
 *   password.
 * - A dry run ignores the key: it is executed each time.
 * - If a field has a stored response, claim_answer raises a notice (OperationWork.noticed), and the response has the
 *   header `Idempotency-Replayed: true`.
 */
import { createHmac } from "node:crypto";
import { context, lambda, operationPlan, type ExecutableStep } from "postgraphile/grafast";
import type { PgCodec } from "postgraphile/@dataplan/pg";
import { sql, type SQL } from "postgraphile/pg-sql2";
import { workOf } from "../admission/operationWork.ts";
import { CodedError } from "../base/errors.ts";

/** Idempotency data in the context of a request. */
export interface IdempotencyFacts {
  /** The header `Idempotency-Key` as sent. */
  readonly header: string | undefined;
  /** Canonical form of the request. */
  body(): string;
}

declare global {
  namespace Grafast {
    interface Context {
      /** Undefined for an operation that did not come over HTTP, which is never deduplicated. */
      repeats?: IdempotencyFacts;
    }
  }
}

/** The input field of every mutation. */
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
  throw new CodedError(
    "BAD_USER_INPUT",
    "An idempotency key must have 1 to 255 printable ASCII characters.",
    {
      field,
    },
  );
}

/** Key and body of a request with a key; undefined without one. */
export function idempotencyIn(
  input: Record<string, unknown>,
  { repeats, pgSettings }: { repeats?: IdempotencyFacts; pgSettings?: Grafast.Context["pgSettings"] },
): { key: string; body: string } | undefined {
  // A dry run neither replays nor stores a response.
  const key = repeats && !workOf(pgSettings)?.heldTransaction?.isDry && keyOf(input, repeats);
  if (!key) return undefined;
  return { key, body: createHmac("sha256", key).update(repeats!.body()).digest("hex") };
}

/** Number of mutation fields in a plan so far; a document is planned field by field, in order. */
const places = new WeakMap<object, number>();

/**
 * Arguments of claim_answer and keep_answer, undefined without a key. Call it once per mutation field, during
 * planning.
 * @param becomes the result column with the user whom the mutation signs in
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

/** The call, executed only if the key is new; otherwise its stored result. One row, like the call itself. */
export function withIdempotencyKey(codec: PgCodec, repeat: SQL, call: SQL): SQL {
  const answer = codec.attributes ? sql`(once.r).*` : sql`once.r`;
  // OFFSET 0 keeps the planner from evaluating the call once per column.
  return sql`(select ${answer} from (
    select case when claim.answer is null then app_hidden.keep_answer(claim.id, given.repeat, ${call})
      else (select kept.r from jsonb_to_record(claim.answer) as kept (r ${codec.sqlType})) end as r
    from (select ${repeat} as repeat) as given cross join lateral app_hidden.claim_answer(given.repeat) as claim offset 0
  ) as once)`;
}
