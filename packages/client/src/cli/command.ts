/** Definition of a command of `plat`, from which its options, help and completions are derived. */
import type { Client } from "../index.ts";
import type { Output } from "./output.ts";
import type { Profile } from "./profile.ts";

/** An option of a command. */
export interface Option {
  readonly type: "string" | "boolean";
  readonly short?: string;
  readonly multiple?: boolean;
  /** Placeholder for its value in the help, such as `FILE`. */
  readonly value?: string;
  readonly description: string;
}

/** The given values of options. */
export type Values = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** What a command can use while it runs. */
export interface Context {
  readonly values: Values;
  readonly positionals: readonly string[];
  readonly out: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Aborted by Ctrl-C, for commands that run until they are stopped. */
  readonly signal: AbortSignal;
  /** The service and the token: from the profile, unless options or environment variables override them. */
  readonly profile: Profile;
  /** A client of the service. Throws UsageError if the service or the token is unknown. */
  connect(options?: { anonymous?: boolean }): Promise<Client>;
  /** The id of the organization to act for: the given one, otherwise the only organization of the viewer. */
  organization(): Promise<string>;
  /** The whole standard input, as text. */
  readInput(): Promise<string>;
}

export interface Command {
  /** Such as `events tail`. */
  readonly name: string;
  /** One line, without a full stop. */
  readonly summary: string;
  /** The arguments after the options, such as `[NAME...]`. */
  readonly usage?: string;
  /** Further sentences of its help. */
  readonly details?: string;
  readonly options?: Readonly<Record<string, Option>>;
  readonly examples?: readonly string[];
  /** Returns the exit code. Default: 0. */
  run(context: Context): Promise<number | void>;
}

/** Invalid arguments: exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Exit codes of the process. */
export const exitCodes = {
  /** The service refused the operation, or a part of it failed. */
  failed: 1,
  usage: 2,
  /** Not signed in, or the token has expired. */
  unauthenticated: 3,
  /** No response from the service. */
  unreachable: 4,
  interrupted: 130,
} as const;

/** The value of a text option; undefined if it is omitted. */
export function text({ values }: Pick<Context, "values">, name: string): string | undefined {
  const value = values[name];
  return typeof value === "string" ? value : undefined;
}

/** The values of a repeatable option. */
export function texts({ values }: Pick<Context, "values">, name: string): readonly string[] {
  const value = values[name];
  return Array.isArray(value) ? (value as readonly string[]) : typeof value === "string" ? [value] : [];
}
