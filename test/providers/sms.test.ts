/**
 * Text messages: the outbox, and the client of the real provider over HTTP against a server that implements its API.
 */
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { createSmsProvider, SmsDeferred, SmsRefused } from "../../src/providers/sms/index.ts";
import { signatureOf } from "../../src/providers/sms/twilio.ts";
import { notice, sidOf, startTwilioServer, type TwilioServer } from "./twilioServer.ts";

const id = "0190aaaa-0000-7000-8000-000000000001";
const message = { id, to: "+14165550100", body: "Grüße & 100 %" };
let server: TwilioServer;

beforeAll(async () => {
  server = await startTwilioServer();
});
afterAll(() => server.close());
beforeEach(() => {
  server.messages.length = 0;
  server.attempts.length = 0;
  server.answers((response, take) => response.status(201).json(take()));
});

const failure = (promise: Promise<unknown>): Promise<any> =>
  promise.then(
    () => Promise.reject(new Error("It was sent.")),
    (error: unknown) => error,
  );

test("the outbox has one private file per message, however often it is sent", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "plat-sms-"));
  try {
    const outbox = createSmsProvider({ dataDir, baseUrl: "https://localhost:8443" });
    expect(outbox.readNotice).toBeUndefined();
    for (let n = 0; n < 2; n += 1) expect(await outbox.send(message)).toEqual({ id, status: "SENT" });
    const file = join(dataDir, "outbox", `${id}.txt`);
    expect(await readdir(join(dataDir, "outbox"))).toEqual([`${id}.txt`]);
    expect(await readFile(file, "utf8")).toBe("To: +14165550100\n\nGrüße & 100 %\n");
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    await rm(join(dataDir, "outbox"), { recursive: true });
    await writeFile(join(dataDir, "outbox"), "in the way");
    expect(await failure(outbox.send(message))).toMatchObject({ name: "SmsDeferred", mayBeTaken: false });
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
});

test("a message is sent as a form, with the account's key, from a number or a messaging service", async () => {
  const taken = await server.provider().send(message);
  expect(taken).toEqual({ id: server.messages[0]!.sid, status: "ACCEPTED" });
  const { form, authorization } = server.attempts[0]!;
  expect(form).toEqual({
    To: "+14165550100",
    Body: "Grüße & 100 %",
    From: "+14165550199",
    StatusCallback: `https://plat.example/webhooks/messages?message=${id}`,
  });
  expect(authorization).toBe(`Basic ${Buffer.from("AC1:token of the tests").toString("base64")}`);
  const service = `MG${"0".repeat(32)}`;
  await server.provider({ sender: service, notices: false }).send(message);
  expect(server.attempts[1]!.form).toEqual({
    To: "+14165550100",
    Body: "Grüße & 100 %",
    MessagingServiceSid: service,
  });
});

test("a callback URL is only given if the provider can reach it", async () => {
  const twilio = { accountSid: "AC1", authToken: "t", sender: "+14165550199", api: server.api };
  for (const baseUrl of [
    "https://localhost:8443",
    "https://127.0.0.1",
    "https://[::1]",
    "https://plat.example",
  ])
    await createSmsProvider({ twilio, dataDir: "/nowhere", baseUrl }).send(message);
  expect(server.attempts.map(({ form }) => "StatusCallback" in form)).toEqual([false, false, false, true]);
});

test.each([
  [400, 21211, SmsRefused, { stopped: false }, /\(21211\): it is no phone number/],
  [400, 21614, SmsRefused, { stopped: false }, /\(21614\): it is no mobile phone/],
  [400, 21612, SmsRefused, { stopped: false }, /cannot be reached/],
  [400, 21610, SmsRefused, { stopped: true }, /answered STOP/],
  [400, 99999, SmsRefused, { stopped: false }, /for good \(99999\)\.$/],
  // Errors that the operator can correct.
  [400, 21606, SmsDeferred, { mayBeTaken: false }, /service's settings \(400\) \(21606\); tell its operator/],
  [400, 21408, SmsDeferred, { mayBeTaken: false }, /not enabled/],
  [401, 20003, SmsDeferred, { mayBeTaken: false }, /service's settings/],
  [404, 20404, SmsDeferred, { mayBeTaken: false }, /service's settings/],
  [500, 20500, SmsDeferred, { mayBeTaken: true }, /out of order/],
  [503, 0, SmsDeferred, { mayBeTaken: true }, /out of order/],
] as const)("%d with the code %d is classified", async (status, code, kind, rest, text) => {
  server.answers((response) => server.refusal(response, status, code));
  const error = await failure(server.provider().send(message));
  expect(error).toBeInstanceOf(kind);
  expect(error).toMatchObject({ ...rest, message: expect.stringMatching(text) });
  // The error message of the provider may contain the number.
  expect(error.message).not.toMatch(/14165550100/);
});

test.each([
  ["7", 7],
  ["99999", 3600],
  [undefined, 30],
])("429 with Retry-After: %s waits %d seconds", async (header, seconds) => {
  server.answers((response) => {
    if (header) response.set("retry-after", header);
    server.refusal(response, 429, 20429);
  });
  expect(await failure(server.provider().send(message))).toMatchObject({
    name: "SmsDeferred",
    mayBeTaken: false,
    retryAfterSeconds: seconds,
  });
});

test("without a readable response, the provider may have accepted the message", async () => {
  const provider = server.provider({ timeoutMs: 2_000 });
  for (const [answer, text] of [
    [(response: any) => response.status(201).send('{"sid": "SM'), /cannot be read/],
    [(response: any) => response.status(201).json({ sid: null }), /cannot be read/],
    [(response: any) => response.status(201).send("x".repeat(1_100_000)), /cannot be reached/],
    [(response: any) => response.redirect(307, "/elsewhere"), /cannot be reached/],
    [(response: any) => response.socket.destroy(), /cannot be reached/],
    [() => {}, /did not answer in time/],
  ] as const) {
    server.answers(answer);
    const error = await failure(provider.send(message));
    expect(error).toMatchObject({ name: "SmsDeferred", mayBeTaken: true, retryAfterSeconds: undefined });
    expect(error.message).toMatch(text);
  }
  const gone = await startTwilioServer();
  await gone.close();
  expect(await failure(gone.provider().send(message))).toMatchObject({ mayBeTaken: false });
});

test("a message is found by number, text and time, except for known ones", async () => {
  const provider = server.provider();
  const sent = await provider.send(message);
  const since = new Date();
  const known: string[] = [];
  const sought = { ...message, since, known };
  expect(await provider.find(sought)).toEqual(sent);
  expect(await provider.find({ ...sought, known: [sent.id] })).toBeUndefined();
  expect(await provider.find({ ...sought, body: "Other" })).toBeUndefined();
  expect(await provider.find({ ...sought, to: "+14165550101" })).toBeUndefined();
  expect(await provider.find({ ...sought, since: new Date(Date.now() + 180_000) })).toBeUndefined();
  server.messages[0]!.direction = "inbound";
  expect(await provider.find(sought)).toBeUndefined();
  server.messages[0]!.direction = "outbound-api";
  // Behind others, on the third page; older pages are not requested.
  for (let n = 0; n < 120; n += 1)
    server.messages.push({ ...server.messages[0]!, sid: sidOf(), body: `${n}` });
  expect(await provider.find(sought)).toEqual(sent);
  const old = new Date(Date.now() - 3_600_000).toUTCString();
  for (const one of server.messages) one.date_created = old;
  const before = server.lists;
  expect(await provider.find(sought)).toBeUndefined();
  expect(server.lists - before).toBe(1);
});

test("signatures are those of the provider's documentation", () => {
  const params = new URLSearchParams({
    To: "+18005551212",
    From: "+14158675309",
    Digits: "1234",
    Caller: "+14158675309",
    CallSid: "CA1234567890ABCDE",
  });
  expect(signatureOf("12345", "https://mycompany.com/myapp.php?foo=1&bar=2", params)).toBe(
    "RSOYDt4T1cUTdK1PDd93/VVr8B8=",
  );
});

test("signed notifications are accepted", () => {
  const read = server.provider().readNotice!;
  const status = notice({ MessageSid: "SM1", MessageStatus: "undelivered", ErrorCode: "30006" }, id);
  expect(read(status)).toEqual({
    id,
    providerId: "SM1",
    status: "UNDELIVERED",
    error: "The message was not delivered (30006): it is a landline, or cannot be reached.",
  });
  const answer = { MessageSid: "SM2", From: "+14165550100", To: "+14165550199", Body: "Hi\0", NumMedia: "1" };
  expect(read(notice(answer))).toEqual({
    providerId: "SM2",
    from: "+14165550100",
    text: "Hi\uFFFD\n[attachments: 1]",
    meaning: null,
  });
  expect(read(notice({ ...answer, OptOutType: "STOP" }))).toMatchObject({ meaning: "STOP" });
  // Ignored notifications.
  for (const one of [
    notice({ ...answer, From: "whatsapp:+14165550100" }),
    notice({ MessageSid: "SM1", MessageStatus: "new-word" }, id),
    notice({ MessageSid: "SM1", MessageStatus: "sent" }, "1; drop table"),
    notice({ AccountSid: "AC1" }),
  ])
    expect(read(one)).toBeNull();
  for (const forged of [
    notice(answer, undefined, "another token"),
    { ...notice(answer), signature: undefined },
    { ...notice(answer), signature: "" },
    { ...notice(answer), signature: "AAAA" },
    { ...notice(answer), body: notice({ ...answer, Body: "STOP" }).body },
    { ...notice(answer), path: "/webhooks/messages?message=1" },
  ])
    expect(read(forged)).toBeUndefined();
});
