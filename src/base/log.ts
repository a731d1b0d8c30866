/** The log: one JSON object per line on stdout, each with a stable `event` name. */
import { pino, type Logger as PinoLogger } from "pino";
import type { LogEvent } from "./logEvents.ts";
import { logOutput } from "./logOutput.ts";
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
  const lines = (count: number) =>
    log.warn(
      { event: "log.dropped", lines: count },
      "Lines of the log were dropped: its reader was too slow.",
    );
  const log = pino(options, destination ?? logOutput(lines)) as unknown as Logger;
  return log;
}
