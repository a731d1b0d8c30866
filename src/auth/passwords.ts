import { hash, verify } from "@node-rs/argon2";
import type { Pool } from "pg";
import { CodedError } from "../errors.ts";
import type { Claims } from "./claims.ts";
import { createGate, GateFull } from "./gate.ts";

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

/** Each takes 19 MiB and a thread of libuv's four: a flood waits in line, with the memory of two. */
const gate = createGate(2, 500);

/**
 * `@transform hashPassword`: the argon2id hash of a password to be set.
 * @throws {CodedError} BAD_USER_INPUT for one of less than 10 characters or more than 1,000 bytes
 */
export async function hashPassword(value: string, context: TransformContext): Promise<string> {
  const password = acceptable(value, context.member);
  return inTurn(() => hash(password, argon2Parameters));
}

/**
 * `@transform provePassword`: the stored hash when the password fits it, else an empty text, which fits no account.
 * Counts the try in a transaction of its own, before it looks at the password: a try that never comes back, or one
 * of a hundred in parallel, counts too. An unknown name is verified against a dummy, which takes as long.
 * @throws {CodedError} BAD_USER_INPUT for more than 1,000 bytes; the database's RATE_LIMITED
 */
export async function provePassword(value: string, context: TransformContext): Promise<string> {
  const password = normalized(value, context.member);
  // Before the try counts: who gives the right password and a new one that is too short has not guessed.
  if (typeof context.input.newPassword === "string") acceptable(context.input.newPassword, "newPassword");
  const stored = await begin(context);
  return (await inTurn(() => verify(stored, password))) ? stored : "";
}

async function begin({ pool, claims, ip, operation, input }: TransformContext): Promise<string> {
  const [text, who] =
    operation === "login"
      ? ["select app_private.begin_login($1, $2) as hash", String(input.username)]
      : ["select app_private.begin_confirmation($1, $2) as hash", claims.userId];
  if (who === null) throw new CodedError("UNAUTHENTICATED", "Sign in to do this.");
  const { rows } = await pool.query<{ hash: string }>(text, [who, ip ?? null]);
  return rows[0]!.hash;
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

async function inTurn<T>(job: () => Promise<T>): Promise<T> {
  try {
    return await gate(job);
  } catch (error) {
    if (error instanceof GateFull)
      throw new CodedError("RATE_LIMITED", "Too many people are signing in; try again in a moment.", {
        retryAfterSeconds: 5,
      });
    throw error;
  }
}
