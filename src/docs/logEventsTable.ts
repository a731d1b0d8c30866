import { logEvents } from "../base/logEvents.ts";
import { markdownTable } from "./markdownTable.ts";

/** The log events as a Markdown table. */
export const logEventsTable = (): string =>
  markdownTable(
    ["`event`", "Written when"],
    Object.entries(logEvents).map(([name, description]) => [`\`${name}\``, description]),
  );
