/** Standard output for the log. */
import { writeSync } from "node:fs";
import { symbols } from "pino";

/** Milliseconds that a line is buffered. */
const FLUSH_MS = 20;
/** Number of buffered characters at which the buffer is flushed. */
const FLUSH_CHARACTERS = 8_192;
/**
 * Bytes per write. A pipe takes as many at once or none (PIPE_BUF), so lines of several processes that share it are not
 * mixed.
 */
const WRITE_BYTES = 4_096;
/** Milliseconds after which a reader that has accepted nothing is offered the next lines. */
const RETRY_MS = 5;
/** Number of characters that wait for the reader; further lines are dropped. */
const WAITING_CHARACTERS = 4_000_000;
/** Milliseconds that the end of the process waits for a reader that accepts nothing. */
const PATIENCE_MS = 1_000;

/** Level from which a line is written at once (pino's `warn`). */
const URGENT = 40;

/**
 * Buffered standard output: a write per request took a twelfth of the request's CPU time. Warnings and errors flush
 * the buffer at once; so does the end of the process, unless it is killed. Logging never blocks the service: lines wait
 * for a slow reader, and are dropped if there are too many.
 * @param dropped called once the reader accepts lines again, with the number of lines that were dropped
 */
export function logOutput(dropped: (lines: number) => void) {
  let lines: string[] = [];
  let length = 0;
  let lost = 0;
  /** What a write has left of its lines. */
  let rest: Buffer = Buffer.alloc(0);
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  let isWaiting = false;

  const takeLines = (): Buffer => {
    let count = 0;
    let bytes = 0;
    while (count < lines.length) {
      bytes += Buffer.byteLength(lines[count]!);
      if (count > 0 && bytes > WRITE_BYTES) break;
      count++;
    }
    const text = lines.splice(0, count).join("");
    length -= text.length;
    return Buffer.from(text);
  };
  /** @returns false if the reader accepts nothing now */
  const writeOut = (): boolean => {
    while (!isClosed && (rest.length > 0 || lines.length > 0)) {
      if (rest.length === 0) rest = takeLines();
      try {
        rest = rest.subarray(writeSync(1, rest));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "EAGAIN") return false;
        // Nobody reads it any longer.
        isClosed = true;
      }
    }
    return true;
  };
  const later = (ms: number) => {
    timer ??= setTimeout(() => {
      timer = undefined;
      flush();
    }, ms).unref();
  };
  /** @returns whether everything was written */
  const flush = (): boolean => {
    isWaiting = !writeOut();
    if (isWaiting) later(RETRY_MS);
    else if (lost > 0) {
      const count = lost;
      lost = 0;
      dropped(count);
    }
    return !isWaiting;
  };
  process.on("exit", () => {
    let left = Infinity;
    let latest = performance.now() + PATIENCE_MS;
    while (!flush() && performance.now() < latest) {
      if (rest.length + length < left) latest = performance.now() + PATIENCE_MS;
      left = rest.length + length;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
    }
  });
  return {
    [symbols.needsMetadataGsym]: true as const,
    /** Set by the logger before it writes. */
    lastLevel: 0,
    write(line: string): void {
      if (isClosed) return;
      if (length > WAITING_CHARACTERS) return void lost++;
      lines.push(line);
      length += line.length;
      if (!isWaiting && (length >= FLUSH_CHARACTERS || this.lastLevel >= URGENT)) flush();
      else later(FLUSH_MS);
    },
    flushSync: flush,
  };
}
