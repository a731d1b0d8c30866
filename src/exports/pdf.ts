/** PDF exports: a page for each floor plan with its images, a table for anything else. */
import type { Readable } from "node:stream";
import { margin, PdfLayout, type Face } from "../pdf/pdfLayout.ts";
import type { ExportColumn, ExportRow, ExportSource } from "./exportSource.ts";

/** An image as JPEG, scaled to the page; undefined if there is none, or it cannot be read. */
export type Pictures = (key: string) => Promise<Buffer | undefined>;

export interface PagesOptions {
  /** For the properties of the file, and below each page. */
  title: string;
  /** Called with the number of rows written. */
  wrote: (rows: number) => void;
}

/** `FLOOR_PLANS` → `Floor plans`. */
export const sentenceCase = (name: string): string =>
  name.slice(0, 1) + name.slice(1).toLowerCase().replaceAll("_", " ");

/** `basePrice` → `Base price`. */
const label = (name: string): string => {
  const words = name.replace(/([a-z])([A-Z])/g, (_all, a: string, b: string) => `${a} ${b.toLowerCase()}`);
  return words.slice(0, 1).toUpperCase() + words.slice(1);
};

function shown(cell: string, type: string, currency?: string): string {
  if (type === "MONEY" && /^-?\d+(\.\d+)?$/.test(cell)) {
    const [whole, rest] = cell.split(".") as [string, string | undefined];
    const amount = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : "");
    return currency ? `${currency} ${amount}` : amount;
  }
  if (type === "ENUM") return sentenceCase(cell);
  if (type === "DATETIME") return cell.replace("T", " ").slice(0, 16);
  if (type === "BOOLEAN") return cell === "true" ? "yes" : "no";
  return cell;
}

/**
 * One page per floor plan. The rows are read before the pictures are fetched, so that the transaction remains short.
 */
export function floorPlanPages(
  source: Pick<ExportSource, "columns" | "timeZone" | "batches" | "pictures" | "close">,
  pictures: Pictures,
  options: PagesOptions,
): Readable {
  const { columns, timeZone } = source;
  const paper = new PdfLayout({ ...options, foot: footOf(columns, timeZone), layout: "portrait" });
  return paper.written(async () => {
    // There are few of them; the transaction must not last as long as their images are fetched.
    const rows: ExportRow[] = [];
    for await (const batch of source.batches) rows.push(...batch);
    const keys = await source.pictures(rows.map(([id]) => id));
    await source.close();
    for (const row of rows) {
      if (paper.isOver) return;
      const drawn = await Promise.all((keys.get(row[0]) ?? []).map(pictures));
      paper.page();
      floorPlanPage(
        paper,
        columns,
        row,
        drawn.filter((picture) => picture !== undefined),
      );
      options.wrote(1);
    }
    if (rows.length > 0) return;
    paper.page();
    paper.write("There are no floor plans.", { x: margin, y: margin, width: paper.width, size: 12 });
  });
}

/** In the header of the page. */
const inHead = new Set(["id", "title", "subtitle", "code", "description", "project", "currency"]);

function floorPlanPage(
  paper: PdfLayout,
  columns: ExportColumn[],
  [, ...cells]: ExportRow,
  pictures: Buffer[],
): void {
  const { width, bottom, document } = paper;
  const of = (name: string): string | undefined => {
    const place = columns.findIndex((column) => column.name === name);
    return (place < 0 ? undefined : cells[place]) ?? undefined;
  };
  let y = margin;
  const line = (text: string | undefined, size: number, lines: number, face: Face = "regular") => {
    if (text) y = paper.write(text, { x: margin, y, width, size, face, lines });
  };
  line(of("project"), 9, 1);
  const code = of("code");
  const title = of("title") ?? of("id") ?? "Floor plan";
  line(code ? `${title} (${code})` : title, 22, 2, "bold");
  line(of("subtitle"), 12, 2);
  y += 6;

  // Two facts in a row.
  const facts = columns.flatMap(({ name, type }, i) => {
    const cell = cells[i];
    return cell == null || inHead.has(name)
      ? []
      : [[label(name), shown(cell, type, of("currency"))] as const];
  });
  facts.forEach(([name, value], i) => {
    const at = { y: y + Math.floor(i / 2) * 16, size: 9 };
    const x = margin + (i % 2) * (width / 2);
    paper.write(name, { ...at, x, width: 110, face: "bold" });
    paper.write(value, { ...at, x: x + 115, width: width / 2 - 125 });
  });
  y += Math.ceil(facts.length / 2) * 16 + 6;
  line(of("description"), 9, 8);

  const [first, ...others] = pictures;
  if (!first) return;
  y += 10;
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

/** The widths of columns, as shares of the page. */
const shares: Record<string, number> = {
  ID: 1.2,
  TEXT: 1.4,
  LIST: 1.4,
  JSON: 1.4,
  DATETIME: 1.2,
  BOOLEAN: 0.6,
};
const numbers = new Set(["INTEGER", "DECIMAL", "MONEY"]);

const footOf = (columns: readonly ExportColumn[], timeZone: string): string =>
  columns.some(({ type }) => type === "DATETIME") ? `times: ${timeZone}` : "";

/** A table in landscape format, written while the rows are read. */
export function tablePages(
  source: Pick<ExportSource, "columns" | "timeZone" | "batches">,
  options: PagesOptions,
): Readable {
  const { columns, batches, timeZone } = source;
  const paper = new PdfLayout({ ...options, foot: footOf(columns, timeZone), layout: "landscape" });
  const lineHeight = 14;
  const share = columns.map(({ type }) => shares[type] ?? 0.9);
  const all = share.reduce((sum, one) => sum + one, 0);
  let y = 0;
  const line = (texts: readonly string[], face: Face) => {
    let x = margin;
    texts.forEach((text, i) => {
      const width = (paper.width * share[i]!) / all;
      const align = numbers.has(columns[i]!.type) ? "right" : "left";
      paper.write(text, { x, y, width: width - 6, size: 8, face, align });
      x += width;
    });
    y += lineHeight;
  };
  const page = () => {
    paper.page();
    y = margin;
    line(
      columns.map(({ name }) => label(name)),
      "bold",
    );
  };
  return paper.written(async () => {
    page();
    for await (const batch of batches) {
      for (const [, ...cells] of batch) {
        if (paper.isOver) return;
        if (y > paper.bottom - lineHeight) page();
        line(
          cells.map((cell, i) => (cell === null ? "" : shown(cell, columns[i]!.type))),
          "regular",
        );
      }
      options.wrote(batch.length);
    }
  });
}
