/** What a notification says of one thing: the templates of app_private.notification_rules over the record. */
import { Liquid } from "liquidjs";
import { money, when } from "../messages/values.ts";

/** As app_private.close_notification_mail gives it. */
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

// Plain text: whatever it stands in afterwards is escaped there.
const engine = new Liquid({ cache: true, strictFilters: true, ownPropertyOnly: true, renderLimit: 1000 });
engine.registerFilter("words", (value: unknown) =>
  String(value ?? "")
    .toLowerCase()
    .replaceAll("_", " "),
);
engine.registerFilter("when", (value: unknown, timeZone: unknown = "UTC") => {
  const date = new Date(String(value));
  return Number.isNaN(date.getTime()) ? "" : when(date, String(timeZone));
});
engine.registerFilter("money", (value: unknown, currency: unknown) =>
  money(String(value), String(currency ?? "USD")),
);

/** What these are about is found with their lead or buyer. */
const partsOfPeople = ["contact_message", "lead_note"];

function linkOf({ data, subjectType, subjectId }: Item, webUrl: string): string {
  if (typeof data.link === "string") return data.link;
  if (partsOfPeople.includes(subjectType)) {
    if (data.leadId) return `${webUrl}/#lead=${data.leadId}`;
    if (data.buyerId) return `${webUrl}/#buyer=${data.buyerId}`;
  }
  return `${webUrl}/#${subjectType}=${subjectId}`;
}

/** @param webUrl where people use the service, without a trailing slash */
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
