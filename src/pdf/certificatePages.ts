/** The certificate of an agreement as PDF: what was signed, by whom, when and from where. Runs in a thread; see writeCertificate.ts. */
import { buffer } from "node:stream/consumers";
import { languageOf } from "../messages/language.ts";
import { localize } from "../messages/recognize.ts";
import { localeOf } from "../messages/values.ts";
import { margin, PdfLayout, type Face } from "./pdfLayout.ts";

/** Returned by app_private.signing_certificate. */
export interface CertificateFacts {
  title: string;
  agreementId: string;
  agreementNumber: string;
  organization: string;
  project: string;
  timeZone: string;
  /** The language of the organization, because all signers get the same certificate. */
  language: string;
  filename: string;
  filesize: number;
  checksum: string;
  number: number;
  signers: {
    name: string;
    role: string;
    email: string;
    signedAt: string;
    consent: string | null;
    ip: string | null;
    userAgent: string | null;
    sentTo: string | null;
  }[];
  trail: {
    at: string;
    what: string;
    who: string | null;
    ip: string | null;
    note: string | null;
    checksum: string | null;
  }[];
}

/** Times are in the time zone of the project, with the offset from UTC. */
export async function certificatePages(facts: CertificateFacts): Promise<Buffer> {
  const language = languageOf(facts.language) ?? "en";
  const translated = (english: string): string => localize(english, language, "mails").message;
  const locale = localeOf(language);
  const paper = new PdfLayout({
    title: translated(`Certificate: ${facts.title}`),
    foot: facts.agreementId,
    layout: "portrait",
  });
  const when = (text: string): string =>
    new Date(text).toLocaleString(locale, {
      dateStyle: "long",
      timeStyle: "long",
      timeZone: facts.timeZone,
    });
  let y = 0;
  const room = (height: number) => {
    if (y > 0 && y + height <= paper.bottom) return;
    paper.page();
    y = margin;
  };
  const line = (text: string, size = 9, face: Face = "regular", lines = 12, indent = 0) => {
    room(size * 1.25 * Math.min(lines, 4));
    y = paper.write(text, { x: margin + indent, y, width: paper.width - indent, size, face, lines }) + 2;
  };
  const heading = (text: string) => {
    room(60);
    y += 10;
    line(translated(text), 12, "bold", 2);
    y += 2;
  };
  return buffer(
    paper.written(async () => {
      room(0);
      line(translated("Certificate of signatures"), 18, "bold");
      line(facts.title, 13, "bold", 3);
      line(`${facts.organization} · ${facts.project}`, 10);
      heading("What was signed");
      line(
        translated(
          `${facts.filename}, version ${facts.number}, ${facts.filesize.toLocaleString(locale)} bytes`,
        ),
      );
      line(`SHA-256: ${facts.checksum}`);
      line(translated(`Agreement: ${facts.agreementNumber}, ${facts.agreementId}`));
      heading("Signatures");
      for (const { name, role, email, signedAt, consent, ip, userAgent, sentTo } of facts.signers) {
        room(90);
        line(`${name} · ${translated(role)}`, 10, "bold");
        line(translated(`Signed ${when(signedAt)}`), 9, "regular", 2, 12);
        line(
          translated(
            sentTo ? `Address: ${email}; verified by a one-time code sent to ${sentTo}` : `Address: ${email}`,
          ),
          9,
          "regular",
          3,
          12,
        );
        const from = [ip, userAgent].filter(Boolean).join(", ");
        if (ip) line(translated(`Signed from ${from}`), 9, "regular", 3, 12);
        if (consent) line(`“${consent}”`, 9, "regular", 6, 12);
        y += 4;
      }
      heading("What happened");
      for (const { at, what, who, ip, note, checksum } of facts.trail) {
        const parts = [when(at), translated(what), who, ip, note, checksum && `SHA-256 ${checksum}`];
        line(parts.filter(Boolean).join(" · "), 8, "regular", 4);
      }
    }),
  );
}
