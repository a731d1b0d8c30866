/** Exports on paper: a page for each floor plan with its pictures, a table for anything else. */
import PdfDocument from "pdfkit";
import type { Readable } from "node:stream";
import type { ExportColumn, ExportRow, ExportSource } from "./source.ts";

/** A picture as JPEG, not wider or higher than a page needs; undefined where there is none, or it cannot be read. */
export type Pictures = (key: string) => Promise<Buffer | undefined>;

type Document = InstanceType<typeof PdfDocument>;

const margin = 40;
const regular = "Helvetica";
const bold = "Helvetica-Bold";

/** Characters that the fonts which every reader of PDF has can show. */
const unknown =
  /[^\x20-\x7e\xa0-\xff\u20ac\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\u017d\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\u017e\u0178\n]/gu;

/** Letters that are no base with an accent on it. */
const strokes: Record<string, string> = {
  Ł: "L",
  ł: "l",
  Đ: "D",
  đ: "d",
  Ħ: "H",
  ħ: "h",
  Ŧ: "T",
  ŧ: "t",
  ı: "i",
};

function printable(text: string): string {
  return text.normalize("NFC").replace(unknown, (letter) => {
    if (/\s/.test(letter)) return " ";
    const plain = strokes[letter] ?? letter.normalize("NFKD").replace(/\p{M}/gu, "");
    return /^[\x20-\x7e]+$/.test(plain) ? plain : "?";
  });
}

/** `basePrice` → `Base price`. */
const label = (name: string): string => {
  const words = name.replace(/([a-z])([A-Z])/g, (_all, a: string, b: string) => `${a} ${b.toLowerCase()}`);
  return printable(words[0]!.toUpperCase() + words.slice(1));
};

function shown(cell: string, type: string, currency: string | undefined): string {
  if (type === "MONEY" && /^\d+(\.\d+)?$/.test(cell)) {
    const [whole, rest] = cell.split(".") as [string, string | undefined];
    const amount = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : "");
    return currency ? `${currency} ${amount}` : amount;
  }
  if (type === "ENUM") return cell[0] + cell.slice(1).toLowerCase().replaceAll("_", " ");
  if (type === "DATETIME") return cell.replace("T", " ").slice(0, 16);
  if (type === "BOOLEAN") return cell === "true" ? "yes" : "no";
  return printable(cell);
}

/** Writes while it is read; what goes wrong is the error of the stream. */
function written(document: Document, write: () => Promise<void>): Readable {
  write().then(
    () => document.end(),
    (error: Error) => (document as unknown as Readable).destroy(error),
  );
  return document as unknown as Readable;
}

const isOver = (document: Document): boolean => (document as unknown as Readable).destroyed;

export interface Titles {
  /** For the properties of the file. */
  title: string;
}

export function floorPlanPages(source: ExportSource, pictures: Pictures, { title }: Titles): Readable {
  const document = new PdfDocument({
    size: "A4",
    margin,
    autoFirstPage: false,
    info: { Title: printable(title) },
  });
  return written(document, async () => {
    let pages = 0;
    for await (const batch of source.batches) {
      const keys = await source.pictures(batch.map(([id]) => id));
      for (const row of batch) {
        if (isOver(document)) return;
        document.addPage();
        pages += 1;
        const drawn: Buffer[] = [];
        for (const key of keys.get(row[0]) ?? []) {
          const picture = await pictures(key);
          if (picture) drawn.push(picture);
        }
        floorPlanPage(document, source.columns, row, drawn);
      }
    }
    if (pages === 0) document.addPage().font(regular).fontSize(12).text("There are no floor plans.");
  });
}

/** Said by the head of the page. */
const inHead = new Set(["id", "title", "subtitle", "code", "description", "project", "currency"]);

function floorPlanPage(
  document: Document,
  columns: ExportColumn[],
  [, ...cells]: ExportRow,
  pictures: Buffer[],
): void {
  const width = document.page.width - 2 * margin;
  const bottom = document.page.height - margin;
  const of = (name: string): string | undefined => {
    const place = columns.findIndex((column) => column.name === name);
    return (place < 0 ? undefined : cells[place]) ?? undefined;
  };
  const line = (text: string | undefined, size: number, font = regular) => {
    if (text)
      document
        .font(font)
        .fontSize(size)
        .text(printable(text), { width, height: 3 * size, ellipsis: true });
  };
  line(of("project"), 9);
  line(
    [of("title") ?? of("id") ?? "Floor plan", of("code") && `(${of("code")})`].filter(Boolean).join(" "),
    22,
    bold,
  );
  line(of("subtitle"), 12);
  document.moveDown(0.5);

  // Two facts beside each other.
  const facts = columns.flatMap(({ name, type }, i) => {
    const cell = cells[i];
    return cell == null || inHead.has(name)
      ? []
      : [[label(name), shown(cell, type, of("currency"))] as const];
  });
  const top = document.y;
  facts.forEach(([name, value], i) => {
    const x = margin + (i % 2) * (width / 2);
    const y = top + Math.floor(i / 2) * 16;
    document
      .font(bold)
      .fontSize(9)
      .text(name, x, y, { width: 110, height: 12, ellipsis: true, lineBreak: false });
    document.font(regular).text(value, x + 115, y, { width: width / 2 - 125, height: 12, ellipsis: true });
  });
  document.x = margin;
  document.y = top + Math.ceil(facts.length / 2) * 16 + 6;
  const description = of("description");
  if (description)
    document
      .font(regular)
      .fontSize(9)
      .text(printable(description), margin, document.y, { width, height: 80, ellipsis: true });

  const [first, ...others] = pictures;
  if (!first) return;
  const y = document.y + 10;
  const low = others.length > 0 ? 150 : 0;
  const fit = (x: number, from: number, w: number, h: number, picture: Buffer) =>
    document.image(picture, x, from, { fit: [w, h], align: "center", valign: "center" });
  fit(margin, y, width, bottom - y - low, first);
  others.forEach((picture, i) =>
    fit(
      margin + (i * width) / others.length,
      bottom - low + 10,
      width / others.length - 10,
      low - 10,
      picture,
    ),
  );
}

export function tablePages(source: ExportSource, { title }: Titles): Readable {
  const document = new PdfDocument({
    size: "A4",
    layout: "landscape",
    margin,
    autoFirstPage: false,
    info: { Title: printable(title) },
  });
  const { columns, batches } = source;
  const lineHeight = 14;
  return written(document, async () => {
    const line = (texts: string[], font: string) => {
      const width = (document.page.width - 2 * margin) / columns.length;
      const { y } = document;
      texts.forEach((text, i) =>
        document
          .font(font)
          .fontSize(8)
          .text(text, margin + i * width, y, { width: width - 6, height: lineHeight - 4, ellipsis: true }),
      );
      document.y = y + lineHeight;
    };
    const page = () => {
      document.addPage();
      line(
        columns.map(({ name }) => label(name)),
        bold,
      );
    };
    page();
    for await (const batch of batches)
      for (const [, ...cells] of batch) {
        if (isOver(document)) return;
        if (document.y > document.page.height - margin - lineHeight) page();
        line(
          cells.map((cell, i) => (cell === null ? "" : shown(cell, columns[i]!.type, undefined))),
          regular,
        );
      }
  });
}
