/**
 * Workbooks and PDFs are written in threads beside the event loop: measuring text, parsing fonts and compression take CPU time. The thread
 * requests rows and images as it needs them, and returns its file in chunks with back-pressure.
 */
import { once } from "node:events";
import { PassThrough, type Readable } from "node:stream";
import { Worker } from "node:worker_threads";
import { ignoreEarlyErrors } from "../base/ignoreEarlyErrors.ts";
import type { Pictures } from "./pdf.ts";
import type { ExportColumn, ExportRow, ExportSource } from "./exportSource.ts";

/** The task of a thread. */
export interface WritingData {
  kind: "WORKBOOK" | "TABLE" | "FLOOR_PLANS";
  columns: ExportColumn[];
  timeZone: string;
  title: string;
}

/** Requests of a thread: rows (null: no more), keys of images, an image, the end of the transaction, an accepted chunk. */
export interface WritingCalls {
  rows(): Promise<ExportRow[] | null>;
  pictures(floorPlanIds: string[]): Promise<Map<string, string[]>>;
  picture(key: string): Promise<Uint8Array | undefined>;
  close(): Promise<void>;
  take(piece: Uint8Array): Promise<void>;
}

export type FromThread =
  | { call: keyof WritingCalls; id: number; argument: unknown }
  | { wrote: number }
  | { done: true }
  | { fault: Error };
export interface ToThread {
  id: number;
  value: unknown;
}

/** Memory limit of a thread in megabytes: twice that of a table of 600,000 rows, whose pages are retained until the end. */
const heapMb = 256;

/** Maximum characters of one message of rows, except for a single longer row: larger messages block the event loop. */
const messageLength = 300_000;

/** Splits the rows into messages. */
async function* inMessages(batches: AsyncIterable<ExportRow[]>): AsyncGenerator<ExportRow[]> {
  for await (const batch of batches) {
    let from = 0;
    let length = 0;
    for (const [i, row] of batch.entries()) {
      const more = row.reduce((sum, cell) => sum + (cell?.length ?? 0), 0);
      if (i > from && length + more > messageLength) {
        yield batch.slice(from, i);
        from = i;
        length = 0;
      }
      length += more;
    }
    yield from === 0 ? batch : batch.slice(from);
  }
}

interface WritingOptions {
  title: string;
  /** Called with the number of further rows written. */
  wrote: (rows: number) => void;
  picture?: Pictures;
  /** Memory limit of the thread in megabytes. */
  heapMb?: number;
}

/** @returns the file; closing it terminates the thread; a thread that exceeds its memory fails */
export function writeInThread(
  kind: WritingData["kind"],
  source: ExportSource,
  { title, wrote, picture, heapMb: maxOldGenerationSizeMb = heapMb }: WritingOptions,
): Readable {
  const { columns, timeZone } = source;
  const output = ignoreEarlyErrors(new PassThrough());
  const worker = new Worker(new URL("./exportThread.ts", import.meta.url), {
    workerData: { kind, columns, timeZone, title } satisfies WritingData,
    resourceLimits: { maxOldGenerationSizeMb, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
    name: "plat-export",
  });
  const iterator = inMessages(source.batches);
  const calls: WritingCalls = {
    async rows() {
      const next = await iterator.next();
      return next.done ? null : next.value;
    },
    pictures: source.pictures,
    picture: async (key) => picture?.(key),
    close: source.close,
    async take(piece) {
      if (!output.write(piece)) await once(output, "drain");
    },
  };
  async function answer(call: keyof WritingCalls, id: number, argument: unknown): Promise<void> {
    try {
      const value = await (calls[call] as (argument: unknown) => Promise<unknown>)(argument);
      worker.postMessage({ id, value } satisfies ToThread);
    } catch (error) {
      // The reader receives the error.
      output.destroy(error as Error);
    }
  }
  worker.on("message", (message: FromThread) => {
    if ("call" in message)
      answer(message.call, message.id, message.argument).catch((error: Error) => output.destroy(error));
    else if ("wrote" in message) wrote(message.wrote);
    else if ("done" in message) output.end();
    else output.destroy(message.fault);
  });
  worker.once("error", (error: Error) => output.destroy(error));
  worker.once("exit", () => {
    if (!output.writableEnded) output.destroy(new Error("The thread of an export ended before its file."));
  });
  output.once("close", () => worker.terminate().catch(() => {}));
  return output;
}
