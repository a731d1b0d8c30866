/** The address of the service: its port, its base URL, and how the process reaches itself. */
import { once } from "node:events";
import { createServer } from "node:net";
import { expect, test } from "@jest/globals";
import type { Config } from "../../src/base/config.ts";
import { decideAddress, ownAddress } from "../../src/http/address.ts";

const config = (more: Partial<Config>) => ({ host: "127.0.0.1", baseUrl: undefined, ...more }) as Config;

test("a configured port is kept, and the base URL follows from it", async () => {
  const found = await decideAddress(config({ port: 4_433, dataDir: "/data" }));
  expect(found).toEqual({
    host: "127.0.0.1",
    port: 4_433,
    baseUrl: "https://localhost:4433",
    dataDir: "/data",
  });
  expect(Object.isFrozen(found)).toBe(true);
  expect((await decideAddress(config({ port: 443 }))).baseUrl).toBe("https://localhost");
});

test("without a port, it is a free one, and a configured base URL is kept", async () => {
  const { port, baseUrl } = await decideAddress(config({ port: 0, baseUrl: "https://plat.example" }));
  expect(baseUrl).toBe("https://plat.example");
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  expect(server.address()).toMatchObject({ port });
  server.close();
  await once(server, "close");
  expect((await decideAddress(config({ port: 0 }))).baseUrl).toMatch(/^https:\/\/localhost:\d{5}$/);
});

test.each([
  ["0.0.0.0", "https://127.0.0.1:4433"],
  ["::", "https://[::1]:4433"],
  ["192.0.2.7", "https://192.0.2.7:4433"],
  ["2001:db8::7", "https://[2001:db8::7]:4433"],
  ["plat.internal", "https://plat.internal:4433"],
])("a process that listens on %s reaches itself at %s", (host, url) => {
  expect(ownAddress({ host, port: 4_433 })).toBe(url);
});
