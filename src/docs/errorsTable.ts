import { errorCodes } from "../base/errors.ts";
import { markdownTable } from "./markdownTable.ts";

/** The error codes as a Markdown table. */
export function errorsTable(): string {
  return markdownTable(
    ["Code", "HTTP status", "When"],
    Object.entries(errorCodes).map(([code, { status, description }]) => [
      `\`${code}\``,
      String(status),
      description,
    ]),
  );
}
