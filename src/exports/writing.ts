/**
 * Workbooks and pages are written in a thread each, beside the event loop: letters are measured, fonts taken apart and files packed there.
 * The thread asks for rows and pictures as it needs them, and gives its file in pieces, none before the former one was taken.
 */
import { once } from "node:events";
import { PassThrough, type Readable } from "node:stream";
import { Worker } from "node:worker_threads";
import { ignoreEarlyErrors } from "../base/ignoreEarlyErrors.ts";
import type { Pictures } from "./pdf.ts";
import type { ExportColumn, ExportRow, ExportSource } from "./source.ts";

/** What a thread writes. */
export interface WritingData {
  kind: "WORKBOOK" | "TABLE" | "FLOOR_PLANS";
  columns: ExportColumn[];
  timeZone: string;
  title: string;
}

/** What a thread asks for: rows (null: no more), keys of pictures, a picture, that the transaction ends, that a piece is taken. */
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

/** What a thread may keep, in megabytes: twice what a table of 600,000 rows takes, of which the pages stay until the end. */
const heapMb = 256;

/** Characters of one message of rows, but for a single row that is longer: what is handed over at once takes the event loop a moment. */
const messageLength = 300_000;

/** The rows in parts that make a message each. */
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
  /** Told how many further rows are written. */
  wrote: (rows: number) => void;
  picture?: Pictures;
  /** Megabytes that the thread may keep. */
  heapMb?: number;
}

/** @returns the file; closing it ends the thread, and one that keeps too much fails */
export function writtenInThread(
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
      // Whoever reads learns why there is no more.
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
