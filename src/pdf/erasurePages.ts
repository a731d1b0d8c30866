/** The certificate of an erasure as PDF: what was removed, what remains and why. Runs in a thread; see writeCertificate.ts. */
import { buffer } from "node:stream/consumers";
import { languageOf } from "../messages/language.ts";
import { localeOf } from "../messages/values.ts";
import { margin, PdfLayout, type Face } from "./pdfLayout.ts";

interface Part {
  /** A record type by its name in the API, or another kind of removed data, such as events. */
  record: string;
  count: number;
  fields?: string[];
  reason?: string;
  /** A date. */
  until?: string;
}

/** Returned by app_private.erasure_certificate and app_private.deletion_certificate. */
export interface ErasureFacts {
  id: string;
  /** The subject of the certificate, unless it is the erasure of a person. */
  title?: string;
  organization: string;
  language: string;
  timeZone: string;
  requestedAt: string;
  reason: string | null;
  removed: Part[];
  kept: Part[];
  keptUntil: string | null;
  /** The number of records of the person; nothing if an organization was deleted. */
  leads?: number;
  buyers?: number;
}

/** In English, because it contains names of API fields. Times are in the time zone of the organization. */
export async function erasurePages(facts: ErasureFacts): Promise<Buffer> {
  const locale = localeOf(languageOf(facts.language) ?? "en");
  const { title = "Certificate of erasure" } = facts;
  const paper = new PdfLayout({ title, foot: facts.id, layout: "portrait" });
  let y = 0;
  const line = (text: string, size = 9, face: Face = "regular", lines = 12, indent = 0) => {
    const height = size * 1.25 * Math.min(lines, 4);
    if (y === 0 || y + height > paper.bottom) {
      paper.page();
      y = margin;
    }
    y = paper.write(text, { x: margin + indent, y, width: paper.width - indent, size, face, lines }) + 2;
  };
  const parts = (list: Part[]) => {
    if (list.length === 0) line("Nothing.");
    for (const { record, count, fields, reason, until } of list) {
      line(`${record}: ${count.toLocaleString(locale)}`, 10, "bold", 2);
      if (fields?.length) line(fields.join(", "), 8, "regular", 6, 12);
      if (reason) line(until ? `${reason} Until ${until}.` : reason, 9, "regular", 4, 12);
    }
  };
  const when = new Date(facts.requestedAt).toLocaleString(locale, {
    dateStyle: "long",
    timeStyle: "long",
    timeZone: facts.timeZone,
  });
  return buffer(
    paper.written(async () => {
      line(title, 18, "bold");
      line(facts.organization, 11);
      line(`Asked for: ${when}`);
      if (facts.reason) line(`Reason: ${facts.reason}`);
      if (facts.leads !== undefined) line(`Leads: ${facts.leads}. Purchases: ${facts.buyers}.`);
      y += 10;
      line("What was removed", 12, "bold");
      parts(facts.removed);
      y += 10;
      line("What stays, and why", 12, "bold");
      parts(facts.kept);
      y += 10;
      line(
        "Backups contain the erased data until no backup is older than this certificate. Recipients of earlier events have their own copies.",
      );
    }),
  );
}
