import { commonOptions } from "./arguments.ts";
import type { Command, Option } from "./command.ts";

const rows = (pairs: readonly (readonly [string, string])[]): string => {
  const width = Math.max(...pairs.map(([left]) => left.length));
  return pairs.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join("\n");
};

const optionRows = (options: Readonly<Record<string, Option>>) =>
  rows(
    Object.entries(options).map(([name, { short, value, description }]) => [
      `${short ? `-${short}, ` : "    "}--${name}${value ? ` ${value}` : ""}`,
      description,
    ]),
  );

/** The help of one command. */
export function commandHelp({ name, summary, usage, details, options = {}, examples }: Command): string {
  const parts = [`${summary}.`, `Usage: plat ${name} [OPTIONS]${usage ? ` ${usage}` : ""}`];
  if (details) parts.push(details);
  if (Object.keys(options).length > 0) parts.push(`Options:\n${optionRows(options)}`);
  parts.push(`Common options:\n${optionRows(commonOptions)}`);
  if (examples) parts.push(`Examples:\n${examples.map((example) => `  ${example}`).join("\n")}`);
  return parts.join("\n\n");
}

/** The help of `plat` itself. */
export function help(commands: readonly Command[]): string {
  return [
    "Plat on the command line: queries, live events, webhooks and jobs of one's organization.",
    "Usage: plat COMMAND [OPTIONS]",
    `Commands:\n${rows(commands.map(({ name, summary }) => [name, summary]))}`,
    `Common options:\n${optionRows(commonOptions)}`,
    [
      "Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 not signed in, 4 service not reachable, 130 interrupted.",
      "`plat COMMAND --help` says more of a command. Sign in with `plat login URL`, or set PLAT_URL and PLAT_TOKEN.",
    ].join("\n"),
  ].join("\n\n");
}
