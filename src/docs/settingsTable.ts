import { settings } from "../base/settings.ts";
import { markdownTable } from "./markdownTable.ts";

/** The settings as a Markdown table. */
export function settingsTable(): string {
  return markdownTable(
    ["Setting", "Default", "Meaning"],
    Object.entries(settings).map(([name, setting]) => [
      `\`${name}\``,
      setting.default === undefined ? (setting.defaultText ?? "") : `\`${setting.default}\``,
      setting.description,
    ]),
  );
}
