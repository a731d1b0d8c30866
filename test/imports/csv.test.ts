import { expect, test } from "@jest/globals";
import { Readable } from "node:stream";
import { UploadedFile } from "../../src/files/uploadedFile.ts";
import { csvRows } from "../../src/imports/csv.ts";
import { ImportedRows } from "../../src/imports/importedRows.ts";

const read = async (...pieces: (string | Buffer)[]) => {
  const all = [];
  for await (const rows of csvRows(Readable.from(pieces.map((piece) => Buffer.from(piece)))))
    all.push(...rows);
  return all.map(({ row, cells }) => [row, ...cells]);
};

test("reads cells with commas or semicolons, quoted or not, with any line breaks", async () => {
  expect(await read("a,b\r\n1,2\r\n")).toEqual([
    [1, "a", "b"],
    [2, "1", "2"],
  ]);
  expect(await read('\ufeff"a;x;y",b\n1,"2\n""3"""\n\n , \n4')).toEqual([
    [1, "a;x;y", "b"],
    [2, "1", '2\n"3"'],
    [5, "4"],
  ]);
  expect(await read("a;b;c,d\n;;\n 1 ;\t2;3;4")).toEqual([
    [1, "a", "b", "c,d"],
    [3, "1", "2", "3", "4"],
  ]);
  expect(await read()).toEqual([]);
  expect(await read("\n\n")).toEqual([]);
});

test("chunks may split characters, quotes and line breaks", async () => {
  const bytes = Buffer.from('\ufeffé,"b"\r\n"ü""\r\nx",2\r\n');
  const pieces = [...bytes].map((byte) => Buffer.from([byte]));
  expect(await read(...pieces)).toEqual([
    [1, "é", "b"],
    [2, 'ü"\r\nx', "2"],
  ]);
});

test("reports the row that is not CSV", async () => {
  for (const [text, row] of [
    ['a\n\n"b', 3],
    ['a\n1\n2"\n3', 3],
    ['a\n1\n"2" 3\n', 3],
  ] as [string, number][])
    await expect(read(text)).rejects.toMatchObject({ code: "BAD_USER_INPUT", extensions: { row } });
});

test("reports that the content could not be read", async () => {
  const lost = new Readable({ read: () => lost.destroy(new Error("lost")) });
  await expect(csvRows(lost).next()).rejects.toThrow("lost");
});

test("a large file is read only a few batches ahead of the database", async () => {
  const line = Buffer.from(`${"x".repeat(60)},${"y".repeat(39)}\n`);
  const piece = Buffer.concat(Array.from({ length: 600 }, () => line));
  const size = 4_000_000;
  let produced = 0;
  let stored = 0;
  let ahead = 0;
  function* content() {
    yield Buffer.from("number,title\n");
    for (; produced < size; produced += piece.length) yield piece;
  }
  const client = {
    async query({ text, values }: { text: string; values?: unknown[] }) {
      if (text.includes("begin_import")) return { rows: [[["number", "title"]]] as any[] };
      ahead = Math.max(ahead, produced - stored);
      const rows = JSON.parse(values![2] as string) as unknown[];
      await new Promise((resolve) => setImmediate(resolve));
      stored += rows.length * line.length;
      return { rows: [] };
    },
  };
  const rows = new ImportedRows({
    operation: "importThings",
    project: "p",
    file: new UploadedFile("", "x.csv", size, "text/csv"),
    open: async () => Readable.from(content()),
  });
  await rows.load(client);
  expect(stored).toBe(produced);
  expect(ahead).toBeLessThan(700_000);
});
