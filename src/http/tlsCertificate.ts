import { X509Certificate, createPrivateKey } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Config } from "../base/config.ts";

/** Certificate and key of a TLS server, in PEM. */
export interface Certificate {
  cert: string;
  key: string;
}

const dayMs = 86_400_000;
// Browsers refuse server certificates with a longer validity.
const lifetimeDays = 397;
const renewDaysBefore = 30;

/**
 * The configured certificate, or a self-signed one that is stored in the data folder (`certificate.pem`, `key.pem`)
 * and replaced 30 days before it expires.
 * @throws Error with a message for the user if the configured files do not match.
 */
export async function loadCertificate(config: Config, now = new Date()): Promise<Certificate> {
  if (config.tls) return configured(config.tls);
  const files = { cert: join(config.dataDir, "certificate.pem"), key: join(config.dataDir, "key.pem") };
  const known = await read(files).catch(() => undefined);
  const names = namesFor(config);
  if (known && isUsable(known, config.baseUrl, now)) return known;
  const fresh = await selfSigned(names, now);
  for (const [name, text] of [
    ["key", fresh.key],
    ["cert", fresh.cert],
  ] as const) {
    await writeFile(`${files[name]}.new`, text, { mode: name === "key" ? 0o600 : 0o644 });
    await rename(`${files[name]}.new`, files[name]);
  }
  return fresh;
}

async function read(files: { cert: string; key: string }): Promise<Certificate> {
  return { cert: await readFile(files.cert, "utf8"), key: await readFile(files.key, "utf8") };
}

async function configured(files: { cert: string; key: string }): Promise<Certificate> {
  const pair = await read(files);
  let fits: boolean;
  try {
    fits = new X509Certificate(pair.cert).checkPrivateKey(createPrivateKey(pair.key));
  } catch (error) {
    throw new Error(
      `TLS_CERT (${files.cert}) and TLS_KEY (${files.key}) must be a certificate and an unencrypted key in PEM.`,
      { cause: error },
    );
  }
  if (!fits) throw new Error(`TLS_KEY (${files.key}) is not the key of TLS_CERT (${files.cert}).`);
  return pair;
}

/** Also false for a pair that a crash left half replaced. */
function isUsable({ cert, key }: Certificate, baseUrl: string | undefined, now: Date): boolean {
  try {
    const parsed = new X509Certificate(cert);
    const name = baseUrl === undefined ? "localhost" : bareHost(baseUrl);
    const covers = isIP(name) ? parsed.checkIP(name) : parsed.checkHost(name);
    const expires = new Date(parsed.validTo).getTime();
    return (
      covers !== undefined &&
      expires - now.getTime() > renewDaysBefore * dayMs &&
      parsed.checkPrivateKey(createPrivateKey(key))
    );
  } catch {
    return false;
  }
}

function namesFor({ baseUrl, host }: Config): string[] {
  const names = ["localhost", "127.0.0.1", "::1", hostname()];
  if (baseUrl) names.push(bareHost(baseUrl));
  if (host !== "0.0.0.0" && host !== "::") names.push(host);
  return [...new Set(names)];
}

function bareHost(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, "");
}

async function selfSigned(names: string[], now: Date): Promise<Certificate> {
  // PERF: only loaded once a year.
  const { generate } = await import("selfsigned");
  const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
    keyType: "ec",
    curve: "P-256",
    algorithm: "sha256",
    // Slightly in the past, for clients whose clock is slow.
    notBeforeDate: new Date(now.getTime() - dayMs),
    notAfterDate: new Date(now.getTime() + (lifetimeDays - 1) * dayMs),
    extensions: [
      { name: "basicConstraints", cA: false, critical: true },
      { name: "keyUsage", digitalSignature: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      {
        name: "subjectAltName",
        altNames: names.map((name) => (isIP(name) ? { type: 7, ip: name } : { type: 2, value: name })),
      },
    ],
  });
  return { cert, key };
}
