import { once } from "node:events";
import { mkdirSync, watch } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { request } from "node:https";
import { text } from "node:stream/consumers";
import { join } from "node:path";
import type { IncomingMessage } from "node:http";
import { expect, test } from "@jest/globals";
import PostalMime from "postal-mime";
import { signatureOf } from "../../src/providers/sms/twilio.ts";
import { startService, migratedFolder } from "../harness/service.ts";

test("a message to the service is mailed to the outbox of its data folder", async () => {
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
      TWILIO_ACCOUNT_SID: "AC1",
      TWILIO_AUTH_TOKEN: "token of the tests",
      TWILIO_SENDER: "+14165550199",
    },
  });
  const post = async (path: string, type: string, body: string, headers = {}) => {
    const outgoing = request(`${service.baseUrl}${path}`, {
      method: "POST",
      headers: { "content-type": type, ...headers },
      rejectUnauthorized: false,
      agent: false,
    });
    outgoing.end(body);
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    return { status: response.statusCode, body: await text(response) };
  };
  const query =
    'mutation { contactService(input: { name: "Vi", email: "vi@example.com", message: "Hello" }) }';
  const { body } = await post("/graphql", "application/json", JSON.stringify({ query }));
  expect(JSON.parse(body)).toMatchObject({ data: { contactService: true } });
  const mail = await PostalMime.parse(await readFile(join(outbox, await arrived)));
  expect(mail).toMatchObject({
    from: { address: "no-reply@plat.example" },
    to: [{ address: "desk@plat.example" }],
    replyTo: [{ name: "Vi", address: "vi@example.com" }],
  });
  // Replies to text messages are accepted if an account is configured, signed with its token.
  const form = new URLSearchParams({ MessageSid: "SM1", From: "+14165550100", Body: "Hello" });
  const address = `${service.baseUrl}/webhooks/messages`;
  const reply = (token: string) =>
    post("/webhooks/messages", "application/x-www-form-urlencoded", form.toString(), {
      "x-twilio-signature": signatureOf(token, address, form),
    });
  expect(await reply("token of the tests")).toEqual({ status: 200, body: "<Response/>" });
  expect((await reply("another token")).status).toBe(400);
  const exit = await service.stop();
  expect(exit.code).toBe(0);
  expect(exit.stdout).not.toContain("vi@example.com");
  expect((await readdir(outbox)).filter((name) => name.endsWith(".part"))).toEqual([]);
});
