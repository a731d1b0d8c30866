import { expect, test } from "@jest/globals";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formats } from "../../src/exports/formats.ts";
import type { ExportRow, ExportSource } from "../../src/exports/exportSource.ts";
import { writeInThread } from "../../src/exports/writing.ts";
import { withIncoming } from "../../src/providers/files/incoming.ts";
import { createFileStore } from "../../src/providers/files/index.ts";

// Files that a thread writes with a bounded amount of memory, for any number of rows.

const columns = ["name", "email", "company"].map((name) => ({ name, label: name, type: "TEXT" }));

/** Rows without common words. */
function rows(count: number): ExportSource {
  async function* batches(): AsyncGenerator<ExportRow[]> {
    for (let n = 0; n < count; n += 500)
      yield Array.from({ length: 500 }, (_, i) => [
        `Łucja${n + i}`,
        `lead.${n + i}@example.com`,
        `Ö${n + i}`,
      ]);
  }
  return { columns, timeZone: "UTC", batches: batches() } as Partial<ExportSource> as ExportSource;
}

async function written(kind: "TABLE" | "WORKBOOK", count: number) {
  let wrote = 0;
  let size = 0;
  const options = { title: "Leads", wrote: (more: number) => (wrote += more), heapMb: 40 };
  for await (const piece of writeInThread(kind, rows(count), options)) size += piece.length;
  return { wrote, size };
}

test.each([
  ["TABLE", 7_000],
  ["WORKBOOK", 30_000],
] as const)("a %s of %i rows is written within 40 MB", async (kind, count) => {
  const file = await written(kind, count);
  expect(file.wrote).toBe(count);
  expect(file.size).toBeGreaterThan(count * 10);
});

test("a thread that exceeds its memory limit fails its file only", async () => {
  const options = { title: "Leads", wrote: () => {}, heapMb: 8 };
  await expect(async () => {
    for await (const piece of writeInThread("TABLE", rows(7_000), options)) expect(piece).toBeDefined();
  }).rejects.toMatchObject({ code: "ERR_WORKER_OUT_OF_MEMORY" });
});

test.each(["CSV", "JSONL", "XLSX", "PDF"])(
  "%s that is cancelled before anybody reads it affects nothing else",
  async (name) => {
    const folder = await mkdtemp(join(tmpdir(), "plat-export-"));
    const source: ExportSource = {
      ...rows(500),
      header: "name",
      total: 500,
      permissions: [],
      rights: [],
      lines: (async function* () {
        yield { text: "Ada\n", length: 1 };
      })(),
      pictures: async () => new Map(),
      close: async () => {},
    };
    const store = createFileStore({ dataDir: folder });
    const writing = { subject: "LEADS", isReport: false, filename: "leads", store, wrote: () => {} };
    const content = await formats[name]!.write(source, writing);
    const closed = new Promise<void>((done) => content.once("close", done));
    content.destroy(new Error("The export is not to be written any more."));
    // The error event of a stream is emitted in a separate turn, when it has no listener yet.
    await closed;
    await expect(withIncoming({ folder, limit: 1_000_000 }, content, async () => {})).rejects.toThrow(
      "not to be written any more",
    );
    expect(await readdir(folder)).toEqual([]);
    await rm(folder, { recursive: true });
  },
);
