/** The text of one notification: the templates of app_private.notification_rules over the record. */
import { Liquid } from "liquidjs";
import { money, dateTime } from "../messages/values.ts";

/** Returned by app_private.close_notification_mail. */
export interface Item {
  line: string;
  details: string | null;
  quote: string | null;
  data: Record<string, unknown>;
  project: string | null;
  timeZone: string;
  person: string | null;
  home: string | null;
  subjectType: string;
  subjectId: string;
}

// Plain text, which is escaped where it is inserted.
const engine = new Liquid({ cache: true, strictFilters: true, ownPropertyOnly: true, renderLimit: 1000 });
engine.registerFilter("words", (value: unknown) =>
  String(value ?? "")
    .toLowerCase()
    .replaceAll("_", " "),
);
engine.registerFilter("when", (value: unknown, timeZone: unknown = "UTC") => {
  const date = new Date(String(value));
  return Number.isNaN(date.getTime()) ? "" : dateTime(date, String(timeZone));
});
engine.registerFilter("money", (value: unknown, currency: unknown) =>
  money(String(value), String(currency ?? "USD")),
);

/** Records that are found through their lead or buyer. */
const partsOfPeople = ["contact_message", "lead_note"];

function linkOf({ data, subjectType, subjectId }: Item, webUrl: string): string {
  if (typeof data.link === "string") return data.link;
  if (partsOfPeople.includes(subjectType)) {
    if (data.leadId) return `${webUrl}/#lead=${data.leadId}`;
    if (data.buyerId) return `${webUrl}/#buyer=${data.buyerId}`;
  }
  return `${webUrl}/#${subjectType}=${subjectId}`;
}

/** @param webUrl the URL of the web application, without a trailing slash */
export function renderItem(item: Item, webUrl: string) {
  const fill = (template: string | null): string =>
    template === null ? "" : String(engine.parseAndRenderSync(template, item)).trim();
  return {
    line: fill(item.line),
    details: fill(item.details),
    quote: fill(item.quote),
    link: linkOf(item, webUrl),
  };
}
