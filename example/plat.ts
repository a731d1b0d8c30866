/**
 * The little that a program needs to talk to the service: one POST with a GraphQL document, a file sent along with it, and the
 * mails that people get. Copy it into a program of your own; nothing in it belongs to the service.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { getCACertificates, setDefaultCACertificates } from "node:tls";

/** Where the service is. PLAT_URL and PLAT_DATA say otherwise. */
const address = process.env.PLAT_URL ?? "https://localhost:8443";
/** DATA_DIR of a service on this machine: there are its certificate and, without a mail server, the mails that it wrote. */
const dataDir = process.env.PLAT_DATA ?? "./.data";

// The certificate of a trial was made on its first start, and nobody has signed it: it is trusted by name. One of a real service needs none of this.
const certificate = await readFile(join(dataDir, "certificate.pem"), "utf8").catch(() => undefined);
if (certificate) setDefaultCACertificates([...getCACertificates(), certificate]);

/** What the service refused: its first error, whose `code` programs decide by. docs/errors.md lists the codes. */
export class Refused extends Error {
  readonly code: string;
  /** What else the error says: `field`, `fields`, `existingId`, `claimedUntil` … */
  readonly extensions: Record<string, any>;

  constructor({ message, extensions }: { message: string; extensions: Record<string, any> }) {
    super(message);
    this.code = extensions.code;
    this.extensions = extensions;
  }
}

export type Ask = (document: string, variables?: Record<string, unknown>) => Promise<any>;

interface Options {
  token?: string;
  /** Language of messages, such as `de`; the user's own, unless given. */
  language?: string;
}

/**
 * Somebody who asks the service, with a token or without.
 * The function that it gives posts a document with its variables. It answers `data`, and throws {@link Refused}.
 * A `File` in the variable `input` is sent along, as the GraphQL multipart request specification has it.
 */
export function connect({ token, language }: Options = {}): Ask {
  const headers = {
    ...(token && { Authorization: `Bearer ${token}` }),
    ...(language && { "Accept-Language": language }),
  };
  return async (query, variables = {}) => {
    const input = variables.input as object | undefined;
    const [place, file] = Object.entries(input ?? {}).find(([, value]) => value instanceof File) ?? [];
    const request = {
      query,
      variables: place ? { ...variables, input: { ...input, [place]: null } } : variables,
    };
    const response = file
      ? await post({ ...headers, "GraphQL-Preflight": "1" }, form(request, place!, file as File))
      : await post({ ...headers, "Content-Type": "application/json" }, JSON.stringify(request));
    const { data, errors } = (await response.json()) as any;
    if (errors) throw new Refused(errors[0]);
    return data;
  };
}

const post = (headers: Record<string, string>, body: string | FormData) =>
  fetch(`${address}/graphql`, { method: "POST", headers, body });

function form(request: object, place: string, file: File): FormData {
  const parts = new FormData();
  parts.append("operations", JSON.stringify(request));
  parts.append("map", JSON.stringify({ 0: [`variables.input.${place}`] }));
  parts.append("0", file);
  return parts;
}

/** Fetches a file of the service by its signed address. */
export async function download(url: string): Promise<string> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`The file was not served: ${response.status}`);
  return response.text();
}

/** Asks again, four times a second, until the answer will do: background work takes a moment. At most a minute. */
export async function wait<T>(ask: () => Promise<T>, isDone: (answer: T) => unknown): Promise<T> {
  const end = Date.now() + 60_000;
  for (;;) {
    const answer = await ask();
    if (isDone(answer)) return answer;
    if (Date.now() > end) throw new Error(`A minute was not enough: ${JSON.stringify(answer)}`);
    await pause(250);
  }
}

/** Mails of the outbox that were read, so that each is read once. */
const read = new Set<string>();

/** The text of the next mail to an address whose subject has these words; waits for it. */
export async function mailTo(email: string, subject: RegExp): Promise<string> {
  const outbox = join(dataDir, "outbox");
  const look = async () => {
    for (const name of (await readdir(outbox).catch(() => [])).toSorted()) {
      if (!name.endsWith(".eml") || read.has(name)) continue;
      const mail = await readFile(join(outbox, name), "utf8");
      if (!mail.includes(email) || !subject.test(/^Subject: (.*)$/m.exec(mail)?.[1] ?? "")) continue;
      read.add(name);
      return text(mail);
    }
    return undefined;
  };
  return (await wait(look, (mail) => mail))!;
}

/** The plain part of a mail, its quoted-printable lines joined. */
function text(mail: string): string {
  const [, plain = mail] = /Content-Type: text\/plain[^]*?\r?\n\r?\n([^]*?)\r?\n--/.exec(mail) ?? [];
  return plain
    .replace(/=\r?\n/g, "")
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
}

/** The code or token of a mail: it stands indented on a line of its own. */
export function codeIn(mail: string): string {
  const code = /^ {4}(\S+)\r?$/m.exec(mail)?.[1];
  if (!code) throw new Error(`There is no code in this mail:\n${mail}`);
  return code;
}

/** A page of PDF with a line of text: what a program of yours takes from its own templates. */
export function pdf(line: string): string {
  const stream = `BT /F1 18 Tf 72 720 Td (${line}) Tj ET`;
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
    `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
  ];
  let file = "%PDF-1.4\n";
  const offsets = objects.map((object, n) => {
    const at = file.length;
    file += `${n + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(at).padStart(10, "0")} 00000 n \n`;
  });
  const table = file.length;
  return `${file}xref\n0 6\n0000000000 65535 f \n${offsets.join("")}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n${table}\n%%EOF\n`;
}
