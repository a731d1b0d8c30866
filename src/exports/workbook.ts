/** Workbooks for spreadsheet programs (Office Open XML), written row by row. */
import { Readable, type PassThrough } from "node:stream";
import { finished } from "node:stream/promises";
import { ZipFile } from "yazl";
import type { ExportColumn, ExportRow } from "./exportSource.ts";

/** Limits of a sheet: rows without the header row, and characters, because a part of an archive may have four billion bytes. */
export const maxSheetRows = { rows: 1_048_575, characters: 1_300_000_000 };

/** A fixed date, so that archives are reproducible. */
const packing = { compressionLevel: 4, mtime: new Date(1980, 0, 1), forceDosTimestamp: true };

/** Maximum characters of a cell; programs reject workbooks with more. */
const mostOfCell = 32_767;

/** Indexes of the formats in styles.xml. */
const style = { name: 1, formulaLike: 2, whole: 3, amount: [4, 0, 5, 6], day: 7, time: 8 } as const;
const formats = [0, 0, 0, 1, 3, 4, 164, 165, 166];
const head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const packages = "http://schemas.openxmlformats.org/package/2006";

const widths: Record<string, number> = { ID: 38, TEXT: 24, LIST: 24, JSON: 40, DATE: 12, DATETIME: 20 };

const special = /[&<>\p{Cc}\ufffe\uffff]|_(?=x[0-9a-f]{4}_)/giu;
const marks: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "\t": "\t", "\n": "\n" };

/** Characters that XML does not allow become `_x001F_`; text that looks like such an escape begins with `_x005F_`. */
function escaped(text: string): string {
  return text.replace(
    special,
    (letter) => marks[letter] ?? `_x${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}_`,
  );
}

function textCell(at: string, text: string, kind?: number): string {
  // Not within a surrogate pair.
  const shown =
    text.length > mostOfCell ? `${text.slice(0, mostOfCell - 1).replace(/[\ud800-\udbff]$/, "")}…` : text;
  // It is text in any case, and should remain text when a user edits the cell.
  const styleIndex = kind ?? (/^[=+\-@]/.test(shown) ? style.formulaLike : 0);
  const space = /^\s|\s$|\n/.test(shown) ? ' xml:space="preserve"' : "";
  return `<c r="${at}"${styleIndex ? ` s="${styleIndex}"` : ""} t="inlineStr"><is><t${space}>${escaped(shown)}</t></is></c>`;
}

/** Days since the beginning of 1900, as sheets count; undefined outside of the supported range. */
function days(time: number): number | undefined {
  const count = time / 86_400_000 + 25_569;
  return count >= 61 && count < 2_958_466 ? count : undefined;
}

function cell(at: string, value: string, type: string): string {
  switch (type) {
    case "INTEGER":
    case "DECIMAL":
    case "MONEY": {
      const [, decimals] = /^-?\d+(?:\.(\d+))?$/.exec(value) ?? [];
      // Sheets calculate with 15 digits; longer numbers would change.
      if (!/^-?\d/.test(value) || value.replace(/\D/g, "").length > 15) return textCell(at, value);
      const digits = decimals?.length ?? 0;
      const kind = type === "INTEGER" ? style.whole : type === "MONEY" ? (style.amount[digits] ?? 0) : 0;
      return `<c r="${at}" s="${kind}"><v>${value}</v></c>`;
    }
    case "BOOLEAN":
      return `<c r="${at}" t="b"><v>${value === "true" ? 1 : 0}</v></c>`;
    // Sheets have no time zones: the database returns local times.
    case "DATE":
    case "DATETIME": {
      const count = days(Date.parse(type === "DATE" ? value : `${value}Z`));
      const kind = type === "DATE" ? style.day : style.time;
      return count === undefined ? textCell(at, value) : `<c r="${at}" s="${kind}"><v>${count}</v></c>`;
    }
    default:
      return textCell(at, value);
  }
}

/** 0 → A, 26 → AA. */
const letters = (place: number): string =>
  (place >= 26 ? letters(Math.floor(place / 26) - 1) : "") + String.fromCharCode(65 + (place % 26));

export interface WorkbookOptions {
  /** Name of the sheets, at most 25 letters. */
  title: string;
  /** Called with the number of further rows written. */
  wrote: (rows: number) => void;
  most?: typeof maxSheetRows;
}

/** One sheet, and further ones as needed. Texts have their own cell type, so that no program interprets them as formulas. */
export function workbook(
  columns: readonly ExportColumn[],
  batches: AsyncIterable<ExportRow[]>,
  { title, wrote, most = maxSheetRows }: WorkbookOptions,
): Readable {
  const places = columns.map((_, i) => letters(i));
  const iterator = batches[Symbol.asyncIterator]();

  async function* sheet(
    first: IteratorResult<ExportRow[]>,
  ): AsyncGenerator<string, IteratorResult<ExportRow[]>> {
    yield `${head}<worksheet xmlns="${main}"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><cols>${columns
      .map(
        ({ type }, i) => `<col min="${i + 1}" max="${i + 1}" width="${widths[type] ?? 14}" customWidth="1"/>`,
      )
      .join("")}</cols><sheetData><row r="1">${columns
      .map(({ name }, i) => textCell(`${places[i]}1`, name, style.name))
      .join("")}</row>`;
    let rows = 0;
    let characters = 0;
    let next = first;
    while (
      !next.done &&
      (rows === 0 || (rows + next.value.length <= most.rows && characters < most.characters))
    ) {
      let text = "";
      for (const [, ...cells] of next.value) {
        rows += 1;
        text += `<row r="${rows + 1}">`;
        for (let i = 0; i < cells.length; i += 1) {
          const value = cells[i];
          if (value != null) text += cell(`${places[i]}${rows + 1}`, value, columns[i]!.type);
        }
        text += "</row>";
        if (text.length > 16_384) {
          characters += text.length;
          yield text;
          text = "";
        }
      }
      characters += text.length;
      yield text;
      wrote(next.value.length);
      next = await iterator.next();
    }
    yield "</sheetData></worksheet>";
    return next;
  }

  const archive = new ZipFile();
  const output = archive.outputStream as PassThrough;
  const part = (name: string, text: string) => archive.addBuffer(Buffer.from(text), name, packing);

  async function fill(): Promise<void> {
    part(
      "_rels/.rels",
      `${head}<Relationships xmlns="${packages}/relationships"><Relationship Id="rId1" Type="${relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
    );
    part("xl/styles.xml", styles);
    let next = await iterator.next();
    let sheets = 0;
    do {
      sheets += 1;
      const content = Readable.from(
        (async function* () {
          next = yield* sheet(next);
        })(),
        { objectMode: false },
      );
      archive.addReadStream(content, `xl/worksheets/sheet${sheets}.xml`, packing);
      // Writing stops when the reader stops.
      output.once("close", () => content.destroy());
      await finished(content);
    } while (!next.done);
    const each = (line: (number: number) => string) =>
      Array.from({ length: sheets }, (_, i) => line(i + 1)).join("");
    part(
      "xl/workbook.xml",
      `${head}<workbook xmlns="${main}" xmlns:r="${relations}"><sheets>${each(
        (n) => `<sheet name="${escaped(title)}${sheets > 1 ? ` ${n}` : ""}" sheetId="${n}" r:id="rId${n}"/>`,
      )}</sheets></workbook>`,
    );
    part(
      "xl/_rels/workbook.xml.rels",
      `${head}<Relationships xmlns="${packages}/relationships">${each(
        (n) => `<Relationship Id="rId${n}" Type="${relations}/worksheet" Target="worksheets/sheet${n}.xml"/>`,
      )}<Relationship Id="rId${sheets + 1}" Type="${relations}/styles" Target="styles.xml"/></Relationships>`,
    );
    const kind = "application/vnd.openxmlformats-officedocument.spreadsheetml";
    part(
      "[Content_Types].xml",
      `${head}<Types xmlns="${packages}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="${kind}.sheet.main+xml"/><Override PartName="/xl/styles.xml" ContentType="${kind}.styles+xml"/>${each(
        (n) => `<Override PartName="/xl/worksheets/sheet${n}.xml" ContentType="${kind}.worksheet+xml"/>`,
      )}</Types>`,
    );
    archive.end();
  }
  fill().catch((error: Error) => output.destroy(error));
  return output;
}

const styles = `${head}<styleSheet xmlns="${main}"><numFmts count="3"><numFmt numFmtId="164" formatCode="#,##0.000"/><numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd"/><numFmt numFmtId="166" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/></numFmts><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders><cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs><cellXfs count="${formats.length}">${formats
  .map(
    (format, place) =>
      `<xf numFmtId="${format}" fontId="${place === style.name ? 1 : 0}" fillId="0" borderId="0" xfId="0"${
        place === style.formulaLike ? ' quotePrefix="1"' : ""
      }${format ? ' applyNumberFormat="1"' : ""}/>`,
  )
  .join(
    "",
  )}</cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>`;
