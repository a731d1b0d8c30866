import { destination as openDestination, pino, symbols, type Logger } from "pino";

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

/** Milliseconds that a line waits for others. */
const FLUSH_MS = 20;
/** Characters that are written at once, whoever waits. */
const FLUSH_CHARACTERS = 8_192;

/**
 * Standard output, several lines at a time: a write for each request took a twelfth of the processor time of one. Warnings and errors are
 * written at once, with all before them; so is the rest when the process ends, unless it is killed.
 */
function bufferedOutput() {
  const output = openDestination({ dest: 1, sync: true, minLength: FLUSH_CHARACTERS });
  const flush = () => output.flushSync();
  let timer: NodeJS.Timeout | undefined;
  process.on("exit", flush);
  return {
    [symbols.needsMetadataGsym]: true as const,
    /** Set by the logger before it writes. */
    lastLevel: 0,
    write(line: string): void {
      output.write(line);
      if (this.lastLevel >= pino.levels.values["warn"]!) return flush();
      timer ??= setTimeout(() => {
        timer = undefined;
        flush();
      }, FLUSH_MS).unref();
    },
    flushSync: flush,
  };
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
  return pino(options, destination ?? bufferedOutput());
}
