import { setTimeout as pause } from "node:timers/promises";
import { pino, type Logger } from "pino";

export type { Logger };

// Applied to the finished line, so that it holds at any depth and for texts of libraries.
const secrets: [RegExp, string][] = [
  [
    /"([\w-]*(?:password|secret|token|authorization|cookie|otp)[\w-]*)":"(?:[^"\\]|\\.)*"/gi,
    '"$1":"[redacted]"',
  ],
  [/\b(Bearer|Basic) +[\w.~+/-]+=*/gi, "$1 [redacted]"],
  [/\b(\w+:\/\/[^\s:@/"\\]*):[^\s@/"\\]+@/g, "$1:[redacted]@"],
];

/** Takes passwords, tokens and credentials in addresses out of a log line. */
export function withoutSecrets(line: string): string {
  return secrets.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), line);
}

/** What is worth a line of an error. Database errors also carry their connection and the values of the row: not these. */
function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, message, stack, code, cause } = error as Error & { code?: string };
  return { type: name, message, code, stack, cause: cause === undefined ? undefined : errorFields(cause) };
}

/** Where the log of the process goes. Made at the first use: a test that reads a log has its own. */
let standardOutput: ReturnType<typeof pino.destination> | undefined;

/**
 * Waits until what was logged is written, a second at most. To be called before the process ends: whatever is still waiting then is
 * given up, as writing it to a pipe that nobody reads any more would never end.
 */
export async function flushLog(): Promise<void> {
  const output = standardOutput as (typeof standardOutput & { _writing?: boolean }) | undefined;
  if (!output) return;
  const end = performance.now() + 1000;
  // oxlint-disable-next-line no-underscore-dangle -- it tells nobody otherwise
  while (output._writing && performance.now() < end) await pause(5);
  output.flushSync = () => {};
}

/** The service's log: JSON lines on standard output, with nothing in them that opens a door. */
export function createLog(level: string, destination?: { write(line: string): void }): Logger {
  const options = {
    level,
    base: { service: "plat" },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: errorFields },
    hooks: { streamWrite: withoutSecrets },
  };
  return pino(options, destination ?? (standardOutput ??= pino.destination({ fd: 1, sync: false })));
}
