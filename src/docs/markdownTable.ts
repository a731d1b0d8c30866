/** A Markdown table, padded like the formatter does it, so that generated guides pass its check. */
export function markdownTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [header, ...rows.map((row) => row.map((cell) => cell.replaceAll("|", "\\|")))];
  const widths = header.map((_, column) => Math.max(3, ...all.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join(" | ")} |`;
  const rule = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`;
  return [line(header), rule, ...all.slice(1).map(line)].join("\n");
}
