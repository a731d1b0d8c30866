/** Parses the command line into a command and its options. */
import { parseArgs } from "node:util";
import { type Command, type Option, UsageError, type Values } from "./command.ts";

/** Options of all commands. */
export const commonOptions = {
  url: { type: "string", value: "URL", description: "Address of the service; PLAT_URL." },
  organization: {
    type: "string",
    short: "o",
    value: "SLUG",
    description: "Organization to act for, by id or slug; PLAT_ORGANIZATION.",
  },
  profile: {
    type: "string",
    value: "NAME",
    description: "Profile to use, one for each service and person; PLAT_PROFILE, `default` if omitted.",
  },
  json: { type: "boolean", description: "Write results as JSON, for programs." },
  help: { type: "boolean", short: "h", description: "Show this help." },
  version: { type: "boolean", description: "Show the version of the package." },
} as const satisfies Record<string, Option>;

/** The command that the arguments begin with, and the number of words in its name; the longest name wins. */
export function commandOf(commands: readonly Command[], args: readonly string[]): Command | undefined {
  const words = args.filter((word) => !word.startsWith("-"));
  return commands
    .filter(({ name }) => name.split(" ").every((word, index) => words[index] === word))
    .toSorted((a, b) => b.name.length - a.name.length)[0];
}

/** @throws UsageError for unknown options and missing values */
export function parse(
  args: readonly string[],
  command: Command | undefined,
): { values: Values; positionals: string[] } {
  const definitions: Record<string, Option> = { ...command?.options, ...commonOptions };
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: Object.fromEntries(
        Object.entries(definitions).map(([name, { type, short, multiple }]) => [
          name,
          { type, ...(short && { short }), ...(multiple && { multiple }) },
        ]),
      ),
    });
    return { values: values as Values, positionals: positionals.slice(command?.name.split(" ").length ?? 0) };
  } catch (error) {
    throw new UsageError((error as Error).message.split(". ")[0]!.replace(/\.?$/, "."));
  }
}
