/** Secrets that have to be read again, at rest: AES-256-GCM with a key that the database never sees. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** A named key. The first of a list seals, all of them open. */
export interface SealingKey {
  kid: string;
  secret: string;
}

export interface Seal {
  /** The key that seals. */
  readonly kid: string;
  /** @returns `name of the key.everything else`, another one each time */
  seal(text: string): string;
  /** @throws Error when it was sealed with a key that is not there any more, or was changed since */
  open(sealed: string): string;
}

const algorithm = "aes-256-gcm";

/** @param keys never empty */
export function createSeal(keys: readonly SealingKey[]): Seal {
  const derived = new Map(
    keys.map(({ kid, secret }) => [
      kid,
      Buffer.from(hkdfSync("sha256", secret, "", "plat sealed secrets", 32)),
    ]),
  );
  const [first] = derived.keys();
  if (first === undefined) throw new Error("There is no key to seal with.");
  return {
    kid: first,
    seal(text) {
      const iv = randomBytes(12);
      const cipher = createCipheriv(algorithm, derived.get(first)!, iv);
      const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return `${first}.${Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64url")}`;
    },
    open(sealed) {
      const dot = sealed.lastIndexOf(".");
      const key = derived.get(sealed.slice(0, dot));
      if (!key) throw new Error(`The key ${sealed.slice(0, dot)} that a secret was sealed with is missing.`);
      const bytes = Buffer.from(sealed.slice(dot + 1), "base64url");
      const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, 12));
      decipher.setAuthTag(bytes.subarray(12, 28));
      return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString("utf8");
    },
  };
}
