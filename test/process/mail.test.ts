import { once } from "node:events";
import { mkdirSync, watch } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { request } from "node:https";
import { text } from "node:stream/consumers";
import { join } from "node:path";
import type { IncomingMessage } from "node:http";
import { expect, test } from "@jest/globals";
import PostalMime from "postal-mime";
import { startService, migratedFolder } from "../harness/service.ts";

test("the service mails what happens: a message to it lies in the outbox of its data folder", async () => {
  await using folder = await migratedFolder();
  const outbox = join(folder.path, "outbox");
  mkdirSync(outbox);
  const arrived = new Promise<string>((found) => {
    const watcher = watch(outbox, (_event, name) => {
      if (!name?.endsWith(".eml")) return;
      watcher.close();
      found(name);
    });
  });
  await using service = await startService({
    env: {
      DATA_DIR: folder.path,
      OPERATOR_EMAIL: "desk@plat.example",
      MAIL_FROM: "Plat <no-reply@plat.example>",
    },
  });
  const post = request(`${service.baseUrl}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    rejectUnauthorized: false,
    agent: false,
  });
  post.end(
    JSON.stringify({
      query: 'mutation { contactService(input: { name: "Vi", email: "vi@example.com", message: "Hello" }) }',
    }),
  );
  const [response] = (await once(post, "response")) as [IncomingMessage];
  expect(JSON.parse(await text(response))).toMatchObject({ data: { contactService: true } });
  const mail = await PostalMime.parse(await readFile(join(outbox, await arrived)));
  expect(mail).toMatchObject({
    from: { address: "no-reply@plat.example" },
    to: [{ address: "desk@plat.example" }],
    replyTo: [{ name: "Vi", address: "vi@example.com" }],
  });
  const exit = await service.stop();
  expect(exit.code).toBe(0);
  expect(exit.stdout).not.toContain("vi@example.com");
  expect((await readdir(outbox)).filter((name) => name.endsWith(".part"))).toEqual([]);
});
