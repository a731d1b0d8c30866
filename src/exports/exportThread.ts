/** A thread that writes one file of an export; started and terminated by writing.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { lowerPriority } from "../base/priority.ts";
import type { ExportRow } from "./exportSource.ts";
import type { FromThread, ToThread, WritingCalls, WritingData } from "./writing.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

const { kind, columns, timeZone, title } = workerData as WritingData;
const port = parentPort!;

// Requests take precedence.
lowerPriority(10);

const say = (message: FromThread) => port.postMessage(message);
const pending = new Map<number, (value: DatabaseValue) => void>();
let calls = 0;

function ask<C extends keyof WritingCalls>(call: C, argument?: unknown): ReturnType<WritingCalls[C]> {
  const id = ++calls;
  say({ call, id, argument });
  return new Promise((resolve) => pending.set(id, resolve)) as ReturnType<WritingCalls[C]>;
}

port.on("message", (message: ToThread) => {
  pending.get(message.id)!(message.value);
  pending.delete(message.id);
});

async function* batches(): AsyncGenerator<ExportRow[]> {
  for (let rows = await ask("rows"); rows; rows = await ask("rows")) yield rows;
}

const options = { title, wrote: (rows: number) => say({ wrote: rows }) };

async function written() {
  if (kind === "WORKBOOK") return (await import("./workbook.ts")).workbook(columns, batches(), options);
  const { floorPlanPages, tablePages } = await import("./pdf.ts");
  if (kind === "TABLE") return tablePages({ columns, timeZone, batches: batches() }, options);
  const source = {
    columns,
    timeZone,
    batches: batches(),
    pictures: (ids: string[]) => ask("pictures", ids),
    close: () => ask("close"),
  };
  const picture = async (key: string) => {
    const content = await ask("picture", key);
    return content && Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  };
  return floorPlanPages(source, picture, options);
}

try {
  for await (const piece of await written()) await ask("take", piece);
  say({ done: true });
} catch (error) {
  say({ fault: error as Error });
}
port.close();
