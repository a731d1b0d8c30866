import { randomUUID } from "node:crypto";
import { expect, test } from "@jest/globals";
import { verifyWebhook, WebhookSignatureError } from "../../packages/client/src/index.ts";
import { freshSecret, signedHeaders } from "../../src/webhooks/signature.ts";

const secret = freshSecret();
const body = JSON.stringify({ id: randomUUID(), type: "lead.created", data: { name: "Žofie 🙂" } });
const sign = (by: readonly string[] = [secret], now?: Date) => signedHeaders(randomUUID(), body, by, now);
const refused = (...given: Parameters<typeof verifyWebhook>) =>
  expect(verifyWebhook(...given)).rejects.toThrow(WebhookSignatureError);

test("webhooks signed by the service are verified, for all types of headers and body", async () => {
  const event = JSON.parse(body);
  expect(await verifyWebhook(body, sign(), secret)).toEqual(event);
  expect(await verifyWebhook(new TextEncoder().encode(body), new Headers(sign()), secret)).toEqual(event);
});

test("while a secret is rotated, both are accepted", async () => {
  const former = freshSecret();
  for (const known of [secret, former, [former, secret], [freshSecret(), former]])
    expect(await verifyWebhook(body, sign([secret, former]), known)).toMatchObject({ type: "lead.created" });
});

test("all others are refused", async () => {
  await refused(body, sign(), freshSecret());
  await refused(`${body} `, sign(), secret);
  const headers = sign();
  await refused(body, { ...headers, "webhook-id": randomUUID() }, secret);
  await refused(
    body,
    { ...headers, "webhook-timestamp": String(Number(headers["webhook-timestamp"]) + 1) },
    secret,
  );
  for (const signature of ["", "v1,", "v1,%%%", headers["webhook-signature"]!.replace("v1,", "v2,")])
    await refused(body, { ...headers, "webhook-signature": signature }, secret);
  for (const name of Object.keys(headers)) await refused(body, { ...headers, [name]: undefined }, secret);
  for (const minutes of [-6, 6])
    await refused(body, sign([secret], new Date(Date.now() + minutes * 60_000)), secret);
  await refused(body, { ...headers, "webhook-timestamp": "now" }, secret);
  const old = sign([secret], new Date(Date.now() - 360_000));
  expect(await verifyWebhook(body, old, secret, { toleranceSeconds: 400 })).toMatchObject({
    type: "lead.created",
  });
  await expect(verifyWebhook(body, headers, "")).rejects.toThrow("whsec_ and Base64");
});
