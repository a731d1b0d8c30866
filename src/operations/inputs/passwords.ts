import { hash, verify } from "@node-rs/argon2";
import type { Pool } from "pg";
import { CodedError, signInFirst } from "../../base/errors.ts";
import { passwordHashes, visitorHashes } from "../../admission/semaphores.ts";
import type { Claims } from "../../database/claims.ts";
import { networkOf } from "../../network/networkOf.ts";

/** Context of a transform call. */
export interface TransformContext {
  /** Connections of plat_authenticator. */
  readonly pool: Pick<Pool, "query">;
  readonly claims: Claims;
  readonly ip?: string;
  /** The input field, such as newPassword. */
  readonly member: string;
  /** The field of Mutation, such as updatePassword. */
  readonly operation: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/**
 * argon2id; the dummy hash in app_private.begin_proof must use the same parameters, or unknown names are answered
 * faster.
 */
export const argon2Parameters = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

const LEAST_CHARACTERS = 10;
const MOST_BYTES = 1000;

/**
 * `@transform hashPassword`: the argon2id hash of a new password. Requests that the database would refuse anyway (too
 * many new accounts from that network, an unknown code) are refused before hashing; a new account is counted after
 * it.
 * @throws {CodedError} BAD_USER_INPUT for less than 10 characters or more than 1,000 bytes; RATE_LIMITED
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
 * `@transform provePassword`: the stored hash if the password matches, otherwise an empty text, which matches no
 * account. Attempts are counted in a transaction of their own, after verification. Of a hundred parallel attempts,
 * those beyond the limit are refused whether correct or not. An unknown name runs the same statements and is verified
 * against a dummy hash, which takes as long.
 * @throws {CodedError} BAD_USER_INPUT for more than 1,000 bytes; RATE_LIMITED
 */
export async function provePassword(value: string, context: TransformContext): Promise<string> {
  const { pool, ip } = context;
  const { begin, record, who } = proofOf(context);
  const password = normalized(value, context.member);
  // Before the attempt is counted: a correct password with a new one that is too short is not a guess.
  if (typeof context.input.newPassword === "string") acceptable(context.input.newPassword, "newPassword");
  const { rows } = await pool.query<{ hash: string }>(begin, [who, ip ?? null]);
  const stored = rows[0]!.hash;
  const isRight = await admitted("sign-in", ip, () => verify(stored, password));
  await pool.query(record, [who, ip ?? null, isRight]);
  if (isRight) proved.add(context.input);
  return isRight ? stored : "";
}

/** Inputs whose password was correct. */
const proved = new WeakSet<object>();

/** Whether the password of an input was verified and is correct. */
export const isPasswordVerified = (input: object): boolean => proved.has(input);

/** Database functions that know the account, and its key. */
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
    throw badPassword(`A password must have at least ${LEAST_CHARACTERS} characters.`, member);
  return password;
}

/** The same password can arrive in two Unicode normalization forms, depending on the keyboard. */
function normalized(value: string, member: string): string {
  if (Buffer.byteLength(value) > MOST_BYTES)
    throw badPassword("A password can have at most 1,000 bytes.", member);
  return value.normalize("NFKC");
}

function badPassword(message: string, member: string): CodedError {
  return new CodedError("BAD_USER_INPUT", message, { field: member });
}

/** Visitors sign up and reset passwords: their hashing leaves a thread to users who sign in. */
type Group = "sign-in" | "sign-up";

/** Hashes after admission, fairly by network within the group. @throws CodedError RATE_LIMITED */
function admitted<T>(group: Group, ip: string | undefined, work: () => Promise<T>): Promise<T> {
  const party = { group, key: `${group} ${networkOf(ip)}` };
  const hashing = () => passwordHashes.run(party, work);
  return group === "sign-up" ? visitorHashes.run(party, hashing) : hashing();
}
