import { settings } from "./settings.ts";

/** The settings as a Markdown table, padded the way the formatter does it. */
export function settingsTable(): string {
  const rows = Object.entries(settings).map(([name, setting]) => [
    `\`${name}\``,
    setting.default === undefined ? (setting.defaultText ?? "") : `\`${setting.default}\``,
    setting.description,
  ]);
  const all = [["Setting", "Default", "Meaning"], ...rows];
  const widths = [0, 1, 2].map((column) => Math.max(...all.map((row) => row[column]!.length)));
  const line = (cells: string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join(" | ")} |`;
  const rule = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`;
  return [line(all[0]!), rule, ...rows.map(line)].join("\n");
}
