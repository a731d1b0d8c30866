import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { X509Certificate } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/base/config.ts";
import { loadCertificate } from "../../src/http/tlsCertificate.ts";
import { temporaryFolder } from "../harness/service.ts";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

const config = (env: NodeJS.ProcessEnv = {}) =>
  loadConfig({ NODE_ENV: "test", DATA_DIR: folder.path, ...env });

test("the self-signed certificate names this machine, is stored, and is renewed before it expires", async () => {
  const first = await loadCertificate(config());
  const parsed = new X509Certificate(first.cert);
  for (const name of ["localhost", hostname()]) expect(parsed.checkHost(name)).toBe(name);
  for (const ip of ["127.0.0.1", "::1"]) expect(parsed.checkIP(ip)).toBe(ip);
  expect(await loadCertificate(config())).toEqual(first);
  const expires = new Date(parsed.validTo).getTime();
  const day = 86_400_000;
  expect(await loadCertificate(config(), new Date(expires - 31 * day))).toEqual(first);
  expect(await loadCertificate(config(), new Date(expires - 29 * day))).not.toEqual(first);
});

test("a certificate without the service's own name, or without its key, is created again", async () => {
  await loadCertificate(config());
  const named = await loadCertificate(config({ BASE_URL: "https://plat.example.com" }));
  expect(new X509Certificate(named.cert).checkHost("plat.example.com")).toBe("plat.example.com");
  await writeFile(join(folder.path, "key.pem"), "nothing");
  const again = await loadCertificate(config());
  expect(again.cert).not.toBe(named.cert);
});

test("configured files are used, and refused when they do not match", async () => {
  await using other = await temporaryFolder();
  const ours = await loadCertificate(config());
  await loadCertificate(loadConfig({ DATA_DIR: other.path }));
  const file = (place: string, name: string) => join(place, name);
  const TLS_CERT = file(folder.path, "certificate.pem");
  expect(await loadCertificate(config({ TLS_CERT, TLS_KEY: file(folder.path, "key.pem") }))).toEqual(ours);
  await expect(loadCertificate(config({ TLS_CERT, TLS_KEY: file(other.path, "key.pem") }))).rejects.toThrow(
    /is not the key of TLS_CERT/,
  );
  await expect(loadCertificate(config({ TLS_CERT, TLS_KEY: TLS_CERT }))).rejects.toThrow(
    /must be a certificate and an unencrypted key/,
  );
});
