import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { Agent as PlainAgent, get as getPlain, type IncomingMessage, type RequestListener } from "node:http";
import { Agent, get as getSecure, type RequestOptions } from "node:https";
import { connect } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { loadConfig } from "../../src/config.ts";
import { loadCertificate } from "../../src/http/certificate.ts";
import { listen, type Listener } from "../../src/http/listen.ts";
import { temporaryFolder } from "../harness/service.ts";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

const config = (env: NodeJS.ProcessEnv = {}) => loadConfig({ DATA_DIR: folder.path, ...env });

function start(app: RequestListener): Promise<Listener> {
  return listen({ app, certificate: () => loadCertificate(config()), host: "127.0.0.1", port: 0 });
}

const whoAmI: RequestListener = (request, response) =>
  void response.end((request.socket as TLSSocket).encrypted ? "encrypted" : "plain");

async function ask(url: string, options: RequestOptions = {}): Promise<string> {
  const get = url.startsWith("https:") ? getSecure : getPlain;
  const request = get(url, { agent: false, ...options });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return Buffer.concat((await response.toArray()) as Buffer[]).toString();
}

test("one port takes TLS, checked against the kept certificate, and plain HTTP", async () => {
  const listener = await start(whoAmI);
  const ca = await readFile(join(folder.path, "certificate.pem"));
  expect(await ask(`https://127.0.0.1:${listener.port}/`, { ca })).toBe("encrypted");
  expect(await ask(`https://127.0.0.1:${listener.port}/`, { ca, servername: "localhost" })).toBe("encrypted");
  expect(await ask(`http://127.0.0.1:${listener.port}/`)).toBe("plain");
  await expect(ask(`https://127.0.0.1:${listener.port}/`)).rejects.toMatchObject({
    code: "DEPTH_ZERO_SELF_SIGNED_CERT",
  });
  await listener.close(1000);
});

test("closing lets a running request finish, ends idle and silent connections, takes no new ones", async () => {
  const arrived = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const listener = await start(async (request, response) => {
    if (request.url === "/slow") {
      arrived.resolve();
      await release.promise;
    }
    response.end("done");
  });
  const options = { rejectUnauthorized: false };
  const idle = new Agent({ keepAlive: true, ...options });
  const idlePlain = new PlainAgent({ keepAlive: true });
  await ask(`https://127.0.0.1:${listener.port}/`, { agent: idle });
  await ask(`http://127.0.0.1:${listener.port}/`, { agent: idlePlain });
  const silent = connect(listener.port, "127.0.0.1");
  await once(silent, "connect");
  const silentEnds = once(silent, "close");
  const slow = ask(`https://127.0.0.1:${listener.port}/slow`, {
    agent: new Agent({ keepAlive: true, ...options }),
  });
  await arrived.promise;

  const closed = listener.close(30_000);
  await silentEnds;
  await expect(ask(`https://127.0.0.1:${listener.port}/`, options)).rejects.toMatchObject({
    code: "ECONNREFUSED",
  });
  release.resolve();
  expect(await slow).toBe("done");
  await closed;
});

test("closing cuts off what does not finish in time", async () => {
  const arrived = Promise.withResolvers<void>();
  const listener = await start(() => arrived.resolve());
  const hanging = ask(`https://127.0.0.1:${listener.port}/`, { rejectUnauthorized: false }).catch(
    (error: NodeJS.ErrnoException) => error.code,
  );
  await arrived.promise;
  await listener.close(10);
  expect(await hanging).toBe("ECONNRESET");
});

test("the self-signed certificate names this machine, is kept, and is renewed before it expires", async () => {
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

test("a certificate that lacks the service's own name, or its key, is made again", async () => {
  await loadCertificate(config());
  const named = await loadCertificate(config({ BASE_URL: "https://plat.example.com" }));
  expect(new X509Certificate(named.cert).checkHost("plat.example.com")).toBe("plat.example.com");
  await writeFile(join(folder.path, "key.pem"), "nothing");
  const again = await loadCertificate(config());
  expect(again.cert).not.toBe(named.cert);
});

test("configured files are used, and refused when they do not fit", async () => {
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
