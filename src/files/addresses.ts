/** URLs of file contents: signed, and short-lived unless the record is public. */
import { createHmac, hkdfSync } from "node:crypto";
import { isSameText } from "../secrets/isSameText.ts";

/** Data for a URL, from the database (app_hidden.file_address). */
export interface AddressClaims {
  key: string;
  name: string;
  /** `table.id` of the record that must be public once the URL itself has expired; null for none. */
  record: string | null;
  expires: boolean;
  /** Downloaded instead of displayed: documents. */
  attachment: boolean;
}

/** A URL signed by this service. */
export interface OpenedAddress {
  key: string;
  name: string;
  record: string | undefined;
  attachment: boolean;
  /** Seconds left; undefined if only the record decides. */
  secondsLeft: number | undefined;
}

/** Seconds; a URL is valid for one to two of these periods, so that it stays the same, and cacheable, for a while. */
const period = 600;

export interface FileAddresses {
  sign(claims: AddressClaims): string;
  /** @returns undefined for a forged or incomplete URL */
  open(path: string, query: URLSearchParams): OpenedAddress | undefined;
}

/**
 * @param keys of login tokens, from which separate keys are derived: the first signs, all verify
 * @param baseUrl of the service, without a trailing slash
 */
export function createFileAddresses(
  keys: readonly { secret: string }[],
  baseUrl: string,
  now: () => number = Date.now,
): FileAddresses {
  const derived = keys.map(({ secret }) =>
    Buffer.from(hkdfSync("sha256", secret, "", "plat file addresses", 32)),
  );
  const signatureBy = (key: Buffer, parts: readonly (string | null)[]): string =>
    createHmac("sha256", key).update(JSON.stringify(parts)).digest("base64url");
  return {
    sign({ key, name, record, expires, attachment }) {
      const expiry = expires ? String((Math.floor(now() / 1000 / period) + 2) * period) : null;
      const query = new URLSearchParams();
      if (record !== null) query.set("r", record);
      if (expiry !== null) query.set("e", expiry);
      if (attachment) query.set("a", "1");
      query.set("s", signatureBy(derived[0]!, [key, name, record, expiry, attachment ? "1" : null]));
      return `${baseUrl}/files/${key}/${encodeURIComponent(name)}?${query}`;
    },
    open(path, query) {
      const match = /^\/files\/([a-z0-9.]+)\/([^/]+)$/.exec(path);
      const given = query.get("s");
      if (!match || given === null) return undefined;
      const key = match[1]!;
      let name: string;
      try {
        name = decodeURIComponent(match[2]!);
      } catch {
        return undefined;
      }
      const record = query.get("r");
      const expiry = query.get("e");
      const attachment = query.get("a");
      const parts = [key, name, record, expiry, attachment];
      if (!derived.some((secret) => isSameText(given, signatureBy(secret, parts)))) return undefined;
      const secondsLeft = expiry === null ? undefined : Number(expiry) - Math.floor(now() / 1000);
      return { key, name, record: record ?? undefined, attachment: attachment !== null, secondsLeft };
    },
  };
}
