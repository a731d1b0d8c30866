import { expect, test } from "@jest/globals";
import type { ExportRow, ExportSource } from "../../src/exports/source.ts";
import { writtenInThread } from "../../src/exports/writing.ts";

// Files that a thread writes: what it keeps does not grow with the rows.

const columns = ["name", "email", "company"].map((name) => ({ name, label: name, type: "TEXT" }));

/** Rows of which no two have a word in common. */
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
  for await (const piece of writtenInThread(kind, rows(count), options)) size += piece.length;
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

test("a thread that would keep more than it may is the error of its file", async () => {
  const options = { title: "Leads", wrote: () => {}, heapMb: 8 };
  await expect(async () => {
    for await (const piece of writtenInThread("TABLE", rows(7_000), options)) expect(piece).toBeDefined();
  }).rejects.toMatchObject({ code: "ERR_WORKER_OUT_OF_MEMORY" });
});
