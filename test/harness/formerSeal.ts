import { createCipheriv, hkdfSync, randomBytes } from "node:crypto";
import type { SealingKey } from "../../src/secrets/seal.ts";

/** Seals as earlier versions did, without binding the text to its row. */
export function sealUnbound({ kid, secret }: SealingKey, text: string): string {
  const iv = randomBytes(12);
  const key = Buffer.from(hkdfSync("sha256", secret, "", "plat sealed secrets", 32));
  const cipher = createCipheriv("aes-256-gcm", key, iv);
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return `${kid}.${Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64url")}`;
}
