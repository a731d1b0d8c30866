/**
 * The TLS certificate: configured or self-signed, kept, and renewed in time; and the messages if a port cannot be
 * used.
 */
import { createServer } from "node:net";
import { once } from "node:events";
import { X509Certificate, createPrivateKey, generateKeyPairSync } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import type { Config } from "../../src/base/config.ts";
import { loadCertificate } from "../../src/http/tlsCertificate.ts";
import { serve } from "../../src/http/serve.ts";
import type { Logger } from "../../src/base/log.ts";
import { until } from "../harness/until.ts";

const day = 86_400_000;
const now = new Date("2027-01-01T00:00:00Z");
let dataDir: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "plat-certificate-"));
});
afterEach(() => rm(dataDir, { recursive: true }));

const config = (more: Partial<Config> = {}) =>
  ({
    dataDir,
    host: "127.0.0.1",
    port: 0,
    trustProxy: false,
    streamLimits: { total: 10, ofOrganization: 10, ofViewer: 10, ofAddress: 10 },
    ...more,
  }) as Config;
const names = ({ cert }: { cert: string }) => new X509Certificate(cert).subjectAltName!.split(", ").sort();

test("without one, a certificate is created for the names of this machine and stored, with a private key that only the service can read", async () => {
  const made = await loadCertificate(config(), now);
  const parsed = new X509Certificate(made.cert);
  expect(names(made)).toEqual(
    [
      ...new Set([
        "DNS:localhost",
        "IP Address:127.0.0.1",
        "IP Address:0:0:0:0:0:0:0:1",
        `DNS:${hostname()}`,
      ]),
    ].sort(),
  );
  expect(parsed.subject).toBe("CN=localhost");
  expect(parsed.ca).toBe(false);
  // The key usage "server authentication", which PostgreSQL and browsers require.
  expect(parsed.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
  expect(parsed.checkPrivateKey(createPrivateKey(made.key))).toBe(true);
  expect(createPrivateKey(made.key).asymmetricKeyDetails).toMatchObject({ namedCurve: "prime256v1" });
  // Valid since the day before, for clocks that are behind; browsers refuse a lifetime above 397 days.
  expect(new Date(parsed.validFrom).getTime()).toBe(now.getTime() - day);
  expect(new Date(parsed.validTo).getTime()).toBe(now.getTime() + 396 * day);
  expect((await readdir(dataDir)).sort()).toEqual(["certificate.pem", "key.pem"]);
  expect(await readFile(join(dataDir, "key.pem"), "utf8")).toBe(made.key);
  expect((await stat(join(dataDir, "key.pem"))).mode & 0o777).toBe(0o600);
  expect((await stat(join(dataDir, "certificate.pem"))).mode & 0o777).toBe(0o644);
});

test("it is used until 30 days before its end", async () => {
  const made = await loadCertificate(config(), now);
  const end = new Date(new X509Certificate(made.cert).validTo).getTime();
  expect(await loadCertificate(config(), now)).toEqual(made);
  expect(await loadCertificate(config(), new Date(end - 30 * day - 1000))).toEqual(made);
  expect((await loadCertificate(config(), new Date(end - 30 * day))).cert).not.toBe(made.cert);
});

test("it has the name of the service and the address that it listens on", async () => {
  const made = await loadCertificate(
    config({ baseUrl: "https://plat.example:8443", host: "192.0.2.1" }),
    now,
  );
  expect(names(made)).toEqual(expect.arrayContaining(["DNS:plat.example", "IP Address:192.0.2.1"]));
  // For another name, another certificate is created.
  expect(await loadCertificate(config({ baseUrl: "https://plat.example:8443" }), now)).toEqual(made);
  expect(await loadCertificate(config({ baseUrl: "https://192.0.2.1" }), now)).toEqual(made);
  const other = await loadCertificate(config({ baseUrl: "https://[2001:db8::1]" }), now);
  expect(names(other)).toEqual(expect.arrayContaining(["IP Address:2001:DB8:0:0:0:0:0:1"]));
  for (const host of ["0.0.0.0", "::"]) {
    await rm(join(dataDir, "key.pem"));
    expect(names(await loadCertificate(config({ host }), now))).toHaveLength(
      names(await loadCertificate(config(), now)).length,
    );
  }
});

test("replaces a certificate that is incomplete after a crash, or invalid", async () => {
  const made = await loadCertificate(config(), now);
  const other = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({
    type: "pkcs8",
    format: "pem",
  });
  for (const [name, text] of [
    ["key.pem", other],
    ["certificate.pem", "nonsense"],
  ] as const) {
    await writeFile(join(dataDir, name), text);
    const fresh = await loadCertificate(config(), now);
    expect(fresh.cert).not.toBe(made.cert);
    expect(await loadCertificate(config(), now)).toEqual(fresh);
  }
});

test("configured files are used unchanged, and refused if key and certificate do not match", async () => {
  const made = await loadCertificate(config(), now);
  const tls = { cert: join(dataDir, "c.pem"), key: join(dataDir, "k.pem") };
  await writeFile(tls.cert, made.cert);
  await writeFile(tls.key, made.key);
  await rm(join(dataDir, "certificate.pem"));
  expect(await loadCertificate(config({ tls }), now)).toEqual(made);
  expect(await readdir(dataDir)).not.toContain("certificate.pem");
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  await writeFile(tls.key, privateKey.export({ type: "pkcs8", format: "pem" }));
  await expect(loadCertificate(config({ tls }))).rejects.toThrow(
    `TLS_KEY (${tls.key}) is not the key of TLS_CERT (${tls.cert}).`,
  );
  await writeFile(tls.key, "nonsense");
  const failure = await loadCertificate(config({ tls })).catch((error) => error);
  expect(failure.message).toBe(
    `TLS_CERT (${tls.cert}) and TLS_KEY (${tls.key}) must be a certificate and an unencrypted key in PEM.`,
  );
  expect(failure.cause).toHaveProperty("message");
  await rm(tls.key);
  await expect(loadCertificate(config({ tls }))).rejects.toThrow("ENOENT");
});

test("an address that cannot be used is refused with a remedy", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as { port: number };
  const app = () => {};
  const refusal = (more: Partial<Config>) =>
    serve(app, config(more), { log: { error() {}, info() {} } }).catch((error) => error);
  try {
    const error = await refusal({ port });
    expect(error.message).toBe(
      `Port ${port} on 127.0.0.1 is taken by another program: stop it, or choose another with PORT.`,
    );
    expect(error.cause.code).toBe("EADDRINUSE");
    expect((await refusal({ host: "192.0.2.1" })).message).toBe(
      "HOST 192.0.2.1 is not an address of this machine.",
    );
    expect((await refusal({ host: "no.such.name.invalid" })).message).toMatch(
      /^(HOST no\.such\.name\.invalid is not a known name\.|Cannot listen on no\.such\.name\.invalid:0: .*EAI_AGAIN.*)$/,
    );
  } finally {
    taken.close();
  }
  const serving = await serve(app, config(), { log: { error() {}, info() {} } });
  await serving.close(0);
});

test("reports a certificate that cannot be reloaded, and continues with the previous one", async () => {
  const made = await loadCertificate(config());
  const tls = { cert: join(dataDir, "c.pem"), key: join(dataDir, "k.pem") };
  await writeFile(tls.cert, made.cert);
  await writeFile(tls.key, made.key);
  const warnings: unknown[] = [];
  const expiries: (number | undefined)[] = [];
  const serving = await serve(() => {}, config({ tls }), {
    log: { error: (fields: unknown) => void warnings.push(fields), info() {} } as unknown as Pick<
      Logger,
      "error" | "info"
    >,
    reloaded: (expiresAt) => expiries.push(expiresAt),
    reloadEveryMs: 10,
  });
  try {
    await rm(tls.cert);
    await until(() => warnings.length);
    expect(warnings[0]).toMatchObject({
      event: "tls.reload_failed",
      err: expect.objectContaining({ code: "ENOENT" }),
    });
    expect(expiries).toContain(undefined);
    await writeFile(tls.cert, made.cert);
    const before = expiries.length;
    // It is read again as soon as it exists.
    await until(() => expiries.slice(before).some((expiry) => expiry! > Date.now() / 1000));
  } finally {
    await serving.close(0);
  }
});
