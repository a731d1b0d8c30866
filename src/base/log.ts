import { writeSync } from "node:fs";
import { pino, symbols, type Logger as PinoLogger } from "pino";
import type { LogEvent } from "./logEvents.ts";
import { workContext } from "./workContext.ts";

/** What a log line carries beside its message. */
export interface LogFields {
  event: LogEvent;
  [name: string]: unknown;
}

type Level = "fatal" | "error" | "warn" | "info" | "debug" | "trace";

/** A logger whose lines all have a name that programs can search for and alert on. */
export type Logger = Omit<PinoLogger, Level | "child"> &
  Record<Level, (fields: LogFields, message: string) => void> & {
    child(bindings: Record<string, unknown>): Logger;
  };

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

/** Milliseconds that a reader who is behind has to take a part, until it is given up. */
const PATIENCE_MS = 1_000;

/**
 * Standard output, several lines at a time: a write for each request took a twelfth of the processor time of one. Warnings and errors are
 * written at once, with all before them; so is the rest when the process ends, unless it is killed. Where nobody reads any more, or has
 * stopped reading, lines are given up: no log is worth that the service stands still.
 */
function bufferedOutput() {
  let lines: string[] = [];
  let length = 0;
  let isClosed = false;
  const flush = () => {
    const text = lines.join("");
    lines = [];
    length = 0;
    if (text !== "" && !isClosed) isClosed = !writeOut(text);
  };
  let timer: NodeJS.Timeout | undefined;
  process.on("exit", flush);
  return {
    [symbols.needsMetadataGsym]: true as const,
    /** Set by the logger before it writes. */
    lastLevel: 0,
    write(line: string): void {
      lines.push(line);
      length += line.length;
      if (length >= FLUSH_CHARACTERS || this.lastLevel >= pino.levels.values["warn"]!) return flush();
      timer ??= setTimeout(() => {
        timer = undefined;
        flush();
      }, FLUSH_MS).unref();
    },
    flushSync: flush,
  };
}

/** @returns whether there is still somebody who reads */
function writeOut(text: string): boolean {
  let rest = Buffer.from(text);
  let latest = performance.now() + PATIENCE_MS;
  while (rest.length > 0)
    try {
      rest = rest.subarray(writeSync(1, rest));
      latest = performance.now() + PATIENCE_MS;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") return false;
      if (performance.now() > latest) return true;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  return true;
}

/** Loggers whose lines say by themselves for which request they are. */
const ofRequests = new WeakSet<object>();

/** A logger of a request, for lines that are written where nothing tells any more for whom, such as at the end of a connection. */
export function requestLogger(log: Logger, requestId: string): Logger {
  const child = log.child({ requestId });
  ofRequests.add(child);
  return child;
}

/** For which request, and in which job, a line is written. */
function contextFields(_merged: object, _level: number, logger: object): object {
  const context = workContext.getStore();
  if (!context || ofRequests.has(logger)) return {};
  const { requestId, task, job } = context;
  return { ...(requestId !== undefined && { requestId }), ...(job !== undefined && { task, job }) };
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
    mixin: contextFields,
    // What a line says itself counts.
    mixinMergeStrategy: (said: object, context: object) => ({ ...context, ...said }),
  };
  return pino(options, destination ?? bufferedOutput()) as unknown as Logger;
}
