import { hash, verify } from "@node-rs/argon2";
import type { Pool } from "pg";
import { CodedError, signInFirst } from "../../base/errors.ts";
import { passwordHashes, strangersHashes } from "../../admission/semaphores.ts";
import type { Claims } from "../../database/claims.ts";
import { networkOf } from "../../network/networkOf.ts";

/** What a transform of an argument knows about its call. */
export interface TransformContext {
  /** Connections of plat_authenticator. */
  readonly pool: Pick<Pool, "query">;
  readonly claims: Claims;
  readonly ip?: string;
  /** The member of the input, such as newPassword. */
  readonly member: string;
  /** The field of Mutation, such as updatePassword. */
  readonly operation: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** argon2id; the dummy hash in app_private.begin_proof has to have the same, or unknown names answer faster. */
export const argon2Parameters = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

const LEAST_CHARACTERS = 10;
const MOST_BYTES = 1000;

/**
 * `@transform hashPassword`: the argon2id hash of a password to be set. What the database would refuse anyway (too many new accounts
 * from that network, an unknown code) is refused before anything is hashed; a new account is counted after it.
 * @throws {CodedError} BAD_USER_INPUT for one of less than 10 characters or more than 1,000 bytes; RATE_LIMITED
 */
export async function hashPassword(value: string, context: TransformContext): Promise<string> {
  const { pool, ip, operation, input } = context;
  const password = acceptable(value, context.member);
  const hashed = (group: Group) => admitted(group, ip, () => hash(password, argon2Parameters));
  if (operation === "createAccount") {
    await pool.query("select app_private.begin_sign_up($1)", [ip ?? null]);
    const result = await hashed("sign-up");
    await pool.query("select app_private.count_sign_up($1)", [ip ?? null]);
    return result;
  }
  if (operation === "resetPassword") {
    await pool.query("select app_private.begin_reset($1)", [String(input.token)]);
    return hashed("sign-up");
  }
  return hashed("sign-in");
}

/**
 * `@transform provePassword`: the stored hash when the password fits it, else an empty text, which fits no account.
 * A try counts in a transaction of its own, and only after the password was looked at: one that was never looked at has told
 * nothing. Of a hundred in parallel those that come after the limit are refused whether they were right or wrong. An unknown name
 * takes the same statements, and is verified against a dummy, which takes as long.
 * @throws {CodedError} BAD_USER_INPUT for more than 1,000 bytes; RATE_LIMITED
 */
export async function provePassword(value: string, context: TransformContext): Promise<string> {
  const { pool, ip } = context;
  const { begin, record, who } = proofOf(context);
  const password = normalized(value, context.member);
  // Before the try counts: who gives the right password and a new one that is too short has not guessed.
  if (typeof context.input.newPassword === "string") acceptable(context.input.newPassword, "newPassword");
  const { rows } = await pool.query<{ hash: string }>(begin, [who, ip ?? null]);
  const stored = rows[0]!.hash;
  const isRight = await admitted("sign-in", ip, () => verify(stored, password));
  await pool.query(record, [who, ip ?? null, isRight]);
  if (isRight) proved.add(context.input);
  return isRight ? stored : "";
}

/** Inputs whose password was right. */
const proved = new WeakSet<object>();

/** Whether the password of an input was looked at and is right. */
export const wasProved = (input: object): boolean => proved.has(input);

/** Which functions of the database know the account, and by what. */
function proofOf({ claims, operation, input }: TransformContext) {
  if (operation === "login")
    return {
      begin: "select app_private.begin_login($1, $2) as hash",
      record: "select app_private.record_login($1, $2, $3)",
      who: String(input.username),
    };
  if (claims.userId === null) throw signInFirst();
  return {
    begin: "select app_private.begin_confirmation($1, $2) as hash",
    record: "select app_private.record_confirmation($1, $2, $3)",
    who: claims.userId,
  };
}

function acceptable(value: string, member: string): string {
  const password = normalized(value, member);
  if ([...password].length < LEAST_CHARACTERS)
    throw badPassword(`A password has ${LEAST_CHARACTERS} characters or more.`, member);
  return password;
}

/** One password typed on two keyboards can arrive in two forms of Unicode. */
function normalized(value: string, member: string): string {
  if (Buffer.byteLength(value) > MOST_BYTES) throw badPassword("A password has 1,000 bytes at most.", member);
  return value.normalize("NFKC");
}

function badPassword(message: string, member: string): CodedError {
  return new CodedError("BAD_USER_INPUT", message, { field: member });
}

/** Those who sign up or reset a password are strangers: what they have hashed leaves a thread to those who sign in. */
type Group = "sign-in" | "sign-up";

/** Hashes when it is admitted, fairly by network within the group. @throws CodedError RATE_LIMITED */
function admitted<T>(group: Group, ip: string | undefined, work: () => Promise<T>): Promise<T> {
  const party = { group, key: `${group} ${networkOf(ip)}` };
  const hashing = () => passwordHashes.run(party, work);
  return group === "sign-up" ? strangersHashes.run(party, hashing) : hashing();
}
