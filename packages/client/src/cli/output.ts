/**
 * Output of commands: results are written to standard output, everything else to standard error, so that
 * results can be piped.
 */
import type { Progress } from "../index.ts";

type Stream = Pick<NodeJS.WriteStream, "write"> & { readonly isTTY?: boolean };

export class Output {
  readonly #stdout: Stream;
  readonly #stderr: Stream;
  /** Whether results are written as JSON. */
  readonly json: boolean;

  constructor(stdout: Stream, stderr: Stream, json: boolean) {
    this.#stdout = stdout;
    this.#stderr = stderr;
    this.json = json;
  }

  /** A line of the result. */
  line(text: string): void {
    this.#stdout.write(`${text}\n`);
  }

  /** A line for people; omitted if the result is JSON for a program. */
  note(text: string): void {
    if (!this.json) this.#stderr.write(`${text}\n`);
  }

  problem(text: string): void {
    this.#stderr.write(`${text}\n`);
  }

  /** A result as JSON; indented if the output is a terminal. */
  data(value: unknown): void {
    this.line(JSON.stringify(value, undefined, this.#stdout.isTTY ? 2 : undefined));
  }

  /** Rows under headings, aligned; with `--json`, one JSON object per line. */
  table(
    headings: readonly string[],
    rows: readonly (readonly string[])[],
    objects: readonly unknown[],
  ): void {
    if (this.json) {
      for (const one of objects) this.line(JSON.stringify(one));
      return;
    }
    const all = [headings.map((heading) => heading.toUpperCase()), ...rows];
    const widths = headings.map((_, column) => Math.max(...all.map((row) => row[column]!.length)));
    for (const row of all)
      this.line(
        row
          .map((cell, column) => cell.padEnd(widths[column]!))
          .join("  ")
          .trimEnd(),
      );
  }

  /** Shows the progress of an upload or a job: a bar on a terminal, otherwise nothing. */
  progress(label: string): { at(part: number): void; end(): void } {
    const stream = this.#stderr;
    if (!stream.isTTY || this.json) return { at: () => {}, end: () => {} };
    const at = (part: number) => {
      const full = Math.round(Math.min(part, 1) * 30);
      stream.write(`\r${label} [${"#".repeat(full)}${" ".repeat(30 - full)}] ${Math.round(part * 100)} %`);
    };
    return { at, end: () => void stream.write("\r\x1b[K") };
  }
}

/** Progress of an upload, from 0 to 1. */
export const partOf = ({ sent, total }: Progress): number => (total ? sent / total : 0);
