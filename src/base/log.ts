/** The log: one JSON object per line on stdout, each with a stable `event` name. */
import { writeSync } from "node:fs";
import { pino, symbols, type Logger as PinoLogger } from "pino";
import type { LogEvent } from "./logEvents.ts";
import { workContext } from "./workContext.ts";

/** Fields of a log line besides its message. */
export interface LogFields {
  event: LogEvent;
  [name: string]: unknown;
}

type Level = "fatal" | "error" | "warn" | "info" | "debug" | "trace";

/** A logger whose lines all have an `event` name to search for and alert on. */
export type Logger = Omit<PinoLogger, Level | "child"> &
  Record<Level, (fields: LogFields, message: string) => void> & {
    child(bindings: Record<string, unknown>): Logger;
  };

const secretNames = "password|secret|token|authorization|cookie|otp";
// Applied to the serialized line, so that it covers any depth and texts of libraries.
const secrets: [RegExp, string][] = [
  [new RegExp(`"([\\w-]*(?:${secretNames})[\\w-]*)":"(?:[^"\\\\]|\\\\.)*"`, "gi"), '"$1":"[redacted]"'],
  [/\b(Bearer|Basic) +[\w.~+/-]+=*/gi, "$1 [redacted]"],
  [/\b(\w+:\/\/[^\s:@/"\\]*):[^\s@/"\\]+@/g, "$1:[redacted]@"],
];

/** PERF: what each of the patterns needs, and most lines do not have. */
const mayHoldSecrets = new RegExp(`${secretNames}|bearer|basic|://`, "i");

/** Redacts passwords, tokens and credentials in URLs from a log line. */
export function withoutSecrets(line: string): string {
  if (!mayHoldSecrets.test(line)) return line;
  return secrets.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), line);
}

/**
 * The fields of an error worth logging. Database errors also carry their connection and row values, which must not be
 * logged.
 */
function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, message, stack, code, cause } = error as Error & { code?: string };
  return { type: name, message, code, stack, cause: cause === undefined ? undefined : errorFields(cause) };
}

/** Milliseconds that a line is buffered. */
const FLUSH_MS = 20;
/** Number of buffered characters at which the buffer is flushed. */
const FLUSH_CHARACTERS = 8_192;

/** Milliseconds that a slow reader has to accept a chunk before it is given up. */
const PATIENCE_MS = 1_000;

/**
 * Buffered standard output: a write per request took a twelfth of the request's CPU time. Warnings and errors flush
 * the buffer at once; so does the end of the process, unless it is killed. If standard output is no longer read,
 * lines are dropped: logging must never block the service.
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

/** @returns whether there is still a reader */
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

/** Loggers that already carry the context of a request. */
const ofRequests = new WeakSet<object>();

/** A logger bound to a request, for code that runs outside its async context, such as when a connection ends. */
export function requestLogger(log: Logger, requestId: string): Logger {
  const child = log.child({ requestId });
  ofRequests.add(child);
  return child;
}

let second = -1;
let untilSecond = "";

/** PERF: `isoTime` of pino, with all but the milliseconds computed once a second. */
function timeField(): string {
  const now = Date.now();
  const at = Math.floor(now / 1000);
  if (at !== second) {
    second = at;
    untilSecond = `,"time":"${new Date(at * 1000).toISOString().slice(0, -4)}`;
  }
  return `${untilSecond}${String(now - at * 1000).padStart(3, "0")}Z"`;
}

const noFields = Object.freeze({});

/** Adds the request and the job that a line belongs to. */
function contextFields(ownFields: object, _level: number, logger: object): object {
  const context = workContext.getStore();
  if (!context || ofRequests.has(logger)) return noFields;
  if (context.job === undefined && "requestId" in ownFields) return noFields;
  const { requestId, task, job } = context;
  return { ...(requestId !== undefined && { requestId }), ...(job !== undefined && { task, job }) };
}

/** The log of the service: JSON lines on standard output, without secrets. */
export function createLog(level: string, destination?: { write(line: string): void }): Logger {
  const options = {
    level,
    base: { service: "plat" },
    timestamp: timeField,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: errorFields },
    hooks: { streamWrite: withoutSecrets },
    mixin: contextFields,
    // Fields of the line itself take precedence.
    mixinMergeStrategy: (ownFields: object, context: object) =>
      context === noFields ? ownFields : { ...context, ...ownFields },
  };
  return pino(options, destination ?? bufferedOutput()) as unknown as Logger;
}
