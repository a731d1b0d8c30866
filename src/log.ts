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
  return destination ? pino(options, destination) : pino(options);
}
