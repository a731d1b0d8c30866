/** Pages and text layout: lines that fit their width, in a font with more than Western European characters. */
import { createRequire } from "node:module";
import type { Readable } from "node:stream";

type Document = PDFKit.PDFDocument;
export type Face = "regular" | "bold";

const require = createRequire(import.meta.url);

/** PERF: loaded on first use. With its fonts and compression, it takes a fortieth of the start time. */
const pdfkit = () => require("pdfkit") as typeof import("pdfkit");

/** Only glyphs in use are embedded in the file. */
const font = (face: string) => require.resolve(`dejavu-fonts-ttf/ttf/DejaVuSansCondensed${face}.ttf`);

export const margin = 40;

/** Replaces characters that the font does not have. */
const unknown = "\ufffd";
const ellipsis = "…";

const clusters = new Intl.Segmenter("und", { granularity: "grapheme" });
const rightToLeft = /\S*[\u0590-\u08ff]\S*(?: \S*[\u0590-\u08ff]\S*)+/g;

/** What pdfkit exposes of the current font. */
interface Letters {
  unitsPerEm: number;
  hasGlyphForCodePoint(letter: number): boolean;
  glyphForCodePoint(letter: number): { advanceWidth: number };
}

interface OpenFont {
  font: Letters;
  /** Cached layouts of words. */
  layoutCache: Record<string, unknown>;
}

/** Pages after which cached layouts are discarded: some kilobytes each, which a long table would keep until its end. */
const rememberedPages = 20;

/** Widths of characters, relative to the font size; undefined if the font does not have them. */
class Widths {
  readonly #letters: Letters;
  readonly #known = new Map<number, number | undefined>();

  constructor(letters: Letters) {
    this.#letters = letters;
  }

  of(letter: number): number | undefined {
    if (!this.#known.has(letter))
      this.#known.set(
        letter,
        this.#letters.hasGlyphForCodePoint(letter)
          ? this.#letters.glyphForCodePoint(letter).advanceWidth / this.#letters.unitsPerEm
          : undefined,
      );
    return this.#known.get(letter);
  }

  has(text: string): boolean {
    for (const letter of text) if (this.of(letter.codePointAt(0)!) === undefined) return false;
    return true;
  }

  sum(text: string): number {
    let sum = 0;
    for (const letter of text) sum += this.of(letter.codePointAt(0)!) ?? 0;
    return sum;
  }

  /** The length of the text that fits. */
  fitting(text: string, width: number): number {
    let end = 0;
    let sum = 0;
    for (const letter of text) {
      sum += this.of(letter.codePointAt(0)!) ?? 0;
      if (sum > width) break;
      end += letter.length;
    }
    return end;
  }

  /** The text with unsupported characters replaced. */
  printable(text: string): string {
    if (/^[\x20-\x7e]*$/.test(text)) return text;
    const plain = text
      .normalize("NFC")
      .replace(/\p{Cc}|[\ufe00-\ufe0f]/gu, (letter) => (/\s/.test(letter) ? " " : ""));
    if (this.has(plain)) return plain;
    let shown = "";
    for (const { segment } of clusters.segment(plain)) {
      const simple = segment.normalize("NFKC");
      shown += this.has(segment) ? segment : this.has(simple) ? simple : unknown;
    }
    return shown;
  }

  /** Lines of that width, at most `most`. If the text does not fit, the last line is marked. */
  lines(text: string, width: number, most: number): string[] {
    const lines: string[] = [];
    let rest = this.printable(text).trim();
    while (rest !== "" && lines.length < most) {
      let end = this.fitting(rest, width);
      if (end < rest.length && lines.length === most - 1) {
        end = this.fitting(rest, width - this.sum(ellipsis));
        lines.push(rest.slice(0, end).trimEnd() + ellipsis);
        break;
      }
      const space = end < rest.length ? rest.lastIndexOf(" ", end) : -1;
      if (space > 0) end = space;
      lines.push(rest.slice(0, Math.max(end, 1)).trimEnd());
      rest = rest.slice(Math.max(end, 1)).trimStart();
    }
    return lines;
  }
}

export interface Place {
  x: number;
  y: number;
  width: number;
  size: number;
  face?: Face;
  /** As many lines as necessary. */
  lines?: number;
  align?: "left" | "right";
}

/** A document that is written while it is read; failures are errors of the stream. */
export class PdfLayout {
  readonly document: Document;
  readonly #fonts: Record<Face, OpenFont>;
  readonly #widths: Record<Face, Widths>;
  readonly #foot: string;
  #pages = 0;

  /** @param foot is below each page, next to its number */
  constructor(of: { title: string; foot?: string; layout: "portrait" | "landscape" }) {
    this.document = new (pdfkit())({
      size: "A4",
      layout: of.layout,
      margin,
      autoFirstPage: false,
      info: { Title: of.title },
    });
    this.#foot = [of.title, of.foot].filter(Boolean).join(" · ");
    this.#fonts = { regular: this.#open("regular", ""), bold: this.#open("bold", "-Bold") };
    this.#widths = {
      regular: new Widths(this.#fonts.regular.font),
      bold: new Widths(this.#fonts.bold.font),
    };
  }

  #open(face: Face, file: string): OpenFont {
    this.document.registerFont(face, font(file)).font(face);
    return (this.document as unknown as Record<string, OpenFont>)["_font"]!;
  }

  get width(): number {
    return this.document.page.width - 2 * margin;
  }

  get bottom(): number {
    return this.document.page.height - margin - 14;
  }

  get isOver(): boolean {
    return (this.document as unknown as Readable).destroyed;
  }

  page(): void {
    this.document.addPage();
    this.#pages += 1;
    if (this.#pages % rememberedPages === 0)
      for (const open of Object.values(this.#fonts)) open.layoutCache = Object.create(null);
    const place = { x: margin, y: this.bottom + 6, width: this.width, size: 7 };
    this.write(this.#foot, { ...place, width: this.width - 60 });
    this.write(String(this.#pages), { ...place, align: "right" });
  }

  /** @returns where the next line begins */
  write(text: string, { x, y, width, size, face = "regular", lines = 1, align = "left" }: Place): number {
    const widths = this.#widths[face];
    const shown = widths.lines(text, width / size, lines);
    this.document.font(face).fontSize(size);
    shown.forEach((line, i) => {
      const textWidth = widths.sum(line) * size;
      this.document.text(
        // Words of right-to-left scripts are reversed together with their letters, as one.
        line.replace(rightToLeft, (words) => words.replaceAll(" ", "\u00a0")),
        align === "right" ? x + width - textWidth : x,
        y + i * size * 1.25,
        { lineBreak: false, textWidth, wordCount: 1 } as object,
      );
    });
    return y + shown.length * size * 1.25;
  }

  /** Runs the work that fills the pages, and returns the file. */
  written(work: () => Promise<void>): Readable {
    const file = this.document as unknown as Readable;
    work().then(
      () => this.document.end(),
      (error: Error) => file.destroy(error),
    );
    return file;
  }
}
