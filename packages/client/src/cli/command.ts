/** What a command of `plat` is made of: its options, help and completions follow from this. */
import type { Client } from "../index.ts";
import type { Output } from "./output.ts";
import type { Profile } from "./profile.ts";

/** An option of a command. */
export interface Option {
  readonly type: "string" | "boolean";
  readonly short?: string;
  readonly multiple?: boolean;
  /** What stands for its value in the help, such as `FILE`. */
  readonly value?: string;
  readonly description: string;
}

/** Values of options as they were given. */
export type Values = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** What a command works with. */
export interface Context {
  readonly values: Values;
  readonly positionals: readonly string[];
  readonly out: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Ends what goes on until somebody ends it: Ctrl-C. */
  readonly signal: AbortSignal;
  /** The service and the token: those of the profile, unless options or the environment name others. */
  readonly profile: Profile;
  /** A client of the service. Throws UsageError where no service or no token is known. */
  connect(options?: { anonymous?: boolean }): Promise<Client>;
  /** The id of the organization to act for: that which was named, else the only one of the viewer. */
  organization(): Promise<string>;
  /** Everything on standard input, as text. */
  readInput(): Promise<string>;
}

export interface Command {
  /** Such as `events tail`. */
  readonly name: string;
  /** One line, without a full stop. */
  readonly summary: string;
  /** What follows the options, such as `[NAME...]`. */
  readonly usage?: string;
  /** Further sentences of its help. */
  readonly details?: string;
  readonly options?: Readonly<Record<string, Option>>;
  readonly examples?: readonly string[];
  /** Gives the exit code; 0 where it gives none. */
  run(context: Context): Promise<number | void>;
}

/** The command was given in a way that it cannot be understood: exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** What the process ends with. */
export const exitCodes = {
  /** The service refused the operation, or part of it failed. */
  failed: 1,
  usage: 2,
  /** Not signed in, or the token has ended. */
  unauthenticated: 3,
  /** No answer from the service. */
  unreachable: 4,
  interrupted: 130,
} as const;

/** Of a text option; undefined where it was not given. */
export function text({ values }: Pick<Context, "values">, name: string): string | undefined {
  const value = values[name];
  return typeof value === "string" ? value : undefined;
}

/** Of an option that may come several times. */
export function texts({ values }: Pick<Context, "values">, name: string): readonly string[] {
  const value = values[name];
  return Array.isArray(value) ? (value as readonly string[]) : typeof value === "string" ? [value] : [];
}
