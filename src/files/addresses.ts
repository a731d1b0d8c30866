/** Addresses of contents: signed, and short-lived unless everybody may see the record. */
import { createHmac, hkdfSync } from "node:crypto";
import { isSameText } from "../secrets/isSameText.ts";

/** What the database says about an address (app_hidden.file_address). */
export interface AddressClaims {
  key: string;
  name: string;
  /** `table.id` of the record that everybody has to see once the address does not hold by itself; null for none. */
  record: string | null;
  expires: boolean;
  /** Saved, not shown: documents. */
  attachment: boolean;
}

/** An address that was signed by this service. */
export interface OpenedAddress {
  key: string;
  name: string;
  record: string | undefined;
  attachment: boolean;
  /** Seconds left; undefined where only the record decides. */
  secondsLeft: number | undefined;
}

/** Seconds; an address lives one to two of them, so that it stays the same, and cached, for a while. */
const period = 600;

export interface FileAddresses {
  sign(claims: AddressClaims): string;
  /** @returns undefined for an address that is forged or incomplete */
  open(path: string, query: URLSearchParams): OpenedAddress | undefined;
}

/**
 * @param keys those of login tokens, from which keys of their own are derived: the first signs, all verify
 * @param baseUrl where the service is reached, without a trailing slash
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
