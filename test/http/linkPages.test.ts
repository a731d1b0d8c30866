/** Pages behind links of mails, feeds and provider webhooks: their content, their queries, and refusals. */
import { createHash, createHmac } from "node:crypto";
import { expect, test } from "@jest/globals";
import { CodedError } from "../../src/base/errors.ts";
import type { Compute } from "../../src/compute/computePool.ts";
import { calendars } from "../../src/http/calendars.ts";
import { confirmPage } from "../../src/http/confirm.ts";
import { consentPage } from "../../src/http/consent.ts";
import { messagesWebhook } from "../../src/http/messagesWebhook.ts";
import { paymentsWebhook } from "../../src/http/paymentsWebhook.ts";
import { signingPage } from "../../src/http/signing.ts";
import { signingWebhook } from "../../src/http/signingWebhook.ts";
import { stopEmailChangePage } from "../../src/http/stopEmailChange.ts";
import { trackers } from "../../src/http/trackers.ts";
import { unsubscribePage } from "../../src/http/unsubscribe.ts";
import { ConnectionFailed } from "../../src/integrations/adapter.ts";
import type { Integrations } from "../../src/integrations/integrations.ts";
import { testCompute } from "../harness/compute.ts";
import { scriptedDatabase } from "./scriptedDatabase.ts";
import { startServer } from "./server.ts";

const compute = testCompute({ threads: 1 });
const page = { headers: { accept: "text/html" } };
const get = (path: string, headers: Record<string, string> = {}) => ({
  ...page,
  method: "GET",
  path,
  headers,
});
const post = (path: string) => ({ ...page, method: "POST", path });
const refusal = ({ status, json }: { status: number; json: any }) => [
  status,
  json.errors[0].extensions.code,
  json.errors[0].message,
];

test("a page cannot be framed, loads nothing, and its style is permitted by its hash", async () => {
  const { pool } = scriptedDatabase([
    [/consent_question/, [{ purpose: "NEWS", organization: "A <b>", is_confirmed: false }]],
  ]);
  await using server = await startServer({ confirm: confirmPage(pool) });
  const answer = await server.send(get("/confirm/abc"));
  expect(answer.headers["content-type"]).toBe("text/html; charset=utf-8");
  const style = /<style>(.*)<\/style>/.exec(answer.text)![1]!;
  expect(answer.headers["content-security-policy"]).toBe(
    `default-src 'none'; style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
  );
  expect(answer.text.split("\n")).toEqual([
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
    `<meta name="robots" content="noindex"><title>News from A &lt;b&gt;?</title><style>${style}</style></head><body>`,
    "<h1>News from A &lt;b&gt;?</h1>",
    "<p>They will then send you news. Each email has an unsubscribe link.</p>",
    "<p>If you did not request this, close this page; nothing will happen.</p>",
    '<form method="post"><button>Yes, confirm</button></form>',
    "</body></html>",
  ]);
  expect(style).toMatch(/^body\{.*\}button\{.*\}$/);
});

test.each([
  ["NEWS", "News from Harbour?", "They will then send you news.", "You will receive news from Harbour"],
  [
    "MAILBOX",
    "Receive enquiries to Harbour?",
    "Messages from visitors will be forwarded to your address.",
    "You will receive enquiries to Harbour",
  ],
  [
    "RECIPIENT",
    "Receive emails from Harbour?",
    "They can then send emails to your address.",
    "Harbour may write to you",
  ],
])(
  "GET shows the question for consent to %s, and only POST gives consent",
  async (purpose, ask, explain, done) => {
    const row = { purpose, organization: "Harbour", is_confirmed: false };
    const { pool, queries } = scriptedDatabase([[/consent_question/, [row]]]);
    await using server = await startServer({ confirm: confirmPage(pool) });
    const question = await server.send(get("/confirm/abc"));
    expect(question.text).toContain(`<h1>${ask}</h1>`);
    expect(question.text).toContain(explain);
    expect([question.headers["cache-control"], question.headers["referrer-policy"]]).toEqual([
      "no-store",
      "no-referrer",
    ]);
    expect(queries).toEqual([["select * from app_private.consent_question($1)", "abc"]]);
    row.is_confirmed = true;
    const answer = await server.send(post("/confirm/abc"));
    expect(answer.text).toContain(`<h1>${done}</h1>`);
    expect(answer.text).toContain("<p>Thank you. You can close this page.</p>");
    expect(answer.text).not.toContain("<form");
    expect(queries.slice(1)).toEqual([
      ["select app_private.confirm_consent($1, $2)", "abc", answer.headers["x-request-id"]],
      ["select * from app_private.consent_question($1)", "abc"],
    ]);
  },
);

test("an unknown or expired link of consent is refused", async () => {
  const { pool } = scriptedDatabase([
    [/consent_question/, [{ purpose: null, organization: null, is_confirmed: false }]],
  ]);
  await using server = await startServer({ confirm: confirmPage(pool) });
  expect(refusal(await server.send(get("/confirm/abc")))).toEqual([
    403,
    "FORBIDDEN",
    "This link is incomplete or older than a week; request a new one.",
  ]);
});

test("a link that stops a change of address asks on GET, and stops it on POST", async () => {
  const { pool, queries } = scriptedDatabase([
    [/email_change_to_stop/, [{ found: "<b>@example.com" }]],
    [/stop_email_change/, [{ found: true }]],
  ]);
  await using server = await startServer({ stopEmailChange: stopEmailChangePage(pool) });
  const question = await server.send(get("/stop-email-change/abc"));
  expect(question.text).toContain("<h1>Stop the change?</h1>");
  expect(question.text).toContain("<strong>&lt;b&gt;@example.com</strong>");
  expect(question.text).toContain('<form method="post"><button>Stop the change</button></form>');
  expect([question.headers["cache-control"], question.headers["referrer-policy"]]).toEqual([
    "no-store",
    "no-referrer",
  ]);
  const answer = await server.send(post("/stop-email-change/abc"));
  expect(answer.text).toContain("<h1>The change was stopped</h1>");
  expect(answer.text).not.toContain("<form");
  expect(queries).toEqual([
    ["select app_private.email_change_to_stop($1) as found", "abc"],
    ["select app_private.stop_email_change($1) as found", "abc"],
  ]);
});

test.each([
  ["GET", null],
  ["POST", false],
] as const)("a link that stops nothing is refused by %s", async (method, found) => {
  const { pool } = scriptedDatabase([[/email_change/, [{ found }]]]);
  await using server = await startServer({ stopEmailChange: stopEmailChangePage(pool) });
  expect(refusal(await server.send({ ...get("/stop-email-change/abc"), method }))).toEqual([
    403,
    "FORBIDDEN",
    "This link is incomplete or older than a day, or the change has already been stopped or made.",
  ]);
});

test("a link that unsubscribes from notifications asks on GET, and unsubscribes on POST", async () => {
  const choice = { organization: "Harbour", kind_name: "new leads", wanted: true };
  const { pool, queries } = scriptedDatabase([
    [/open_link/, [{ kind: "new_leads", readerId: "r1" }]],
    [/notification_choice/, [choice]],
  ]);
  await using server = await startServer({ unsubscribe: unsubscribePage(pool) });
  const question = await server.send(get("/unsubscribe/abc"));
  expect(question.text).toContain("<h1>Emails about new leads from Harbour</h1>");
  expect(question.text).toContain('<form method="post"><button>Stop these emails</button></form>');
  expect(queries.map(([text, ...values]) => [/app_private\.(\w+)/.exec(text)![1], ...values])).toEqual([
    ["open_link", "abc"],
    ["notification_choice", "r1", "new_leads"],
  ]);
  choice.wanted = false;
  queries.length = 0;
  const answer = await server.send(post("/unsubscribe/abc"));
  expect(answer.text).toContain("<h1>No more emails about new leads from Harbour</h1>");
  expect(answer.text).toContain("They are turned off. You still receive other emails.");
  expect(answer.text).not.toContain("<form");
  expect(queries.map(([text, ...values]) => [/app_private\.(\w+)/.exec(text)![1], ...values])).toEqual([
    ["open_link", "abc"],
    ["unsubscribe", "r1", "new_leads"],
    ["notification_choice", "r1", "new_leads"],
  ]);
});

test.each([
  ["nothing is known of them", []],
  ["they have left", [{ organization: null, kind_name: "new leads", wanted: true }]],
])("non-members get no notifications: %s", async (_, rows) => {
  const { pool } = scriptedDatabase([
    [/open_link/, [{ kind: "new_leads", readerId: "r1" }]],
    [/notification_choice/, rows],
  ]);
  await using server = await startServer({ unsubscribe: unsubscribePage(pool) });
  const { text } = await server.send(get("/unsubscribe/abc"));
  expect(text).toContain(
    "<h1>You do not receive these emails</h1>\n<p>You are no longer a member there.</p>",
  );
});

test("a link that unsubscribes from marketing has the same page for everybody, and unsubscribes on POST only", async () => {
  const senders: { sender: string | null }[] = [{ sender: "Harbour" }];
  const { pool, queries } = scriptedDatabase([
    [/open_link/, [{ kind: "marketing", readerId: "r1" }]],
    [/marketing_sender/, senders],
  ]);
  await using server = await startServer({ unsubscribe: unsubscribePage(pool) });
  const question = await server.send(get("/unsubscribe/abc"));
  expect(question.text).toContain(
    '<h1>Stop marketing emails from Harbour?</h1>\n<form method="post"><button>Stop these emails</button></form>',
  );
  expect(queries.slice(1)).toEqual([["select app_private.marketing_sender($1) as sender", "r1"]]);
  queries.length = 0;
  const answer = await server.send(post("/unsubscribe/abc"));
  expect(answer.text).toContain("<h1>No more marketing emails from Harbour</h1>");
  expect(answer.text).toContain("<p>You are unsubscribed. You still receive emails about your appointments");
  expect(queries.slice(1)).toEqual([
    ["select app_private.withdraw_consent($1, $2)", "r1", answer.headers["x-request-id"]],
    ["select app_private.marketing_sender($1) as sender", "r1"],
  ]);
  senders[0] = { sender: null };
  expect((await server.send(get("/unsubscribe/abc"))).text).toContain(
    "Stop marketing emails from this sender?",
  );
  senders.length = 0;
  expect((await server.send(get("/unsubscribe/abc"))).text).toContain(
    "Stop marketing emails from this sender?",
  );
});

test.each([
  ["unknown", []],
  ["without a kind", [{ kind: null, readerId: null }]],
])("a link that unsubscribes and is %s is refused", async (_, rows) => {
  const { pool, queries } = scriptedDatabase([[/open_link/, rows]]);
  await using server = await startServer({ unsubscribe: unsubscribePage(pool) });
  expect(refusal(await server.send(post("/unsubscribe/abc")))).toEqual([
    403,
    "FORBIDDEN",
    "This link is incomplete; copy all of it from the mail.",
  ]);
  expect(queries).toHaveLength(1);
});

const consentOf = (
  integrations: Partial<Record<keyof Integrations, (parameters: URLSearchParams) => unknown>>,
) => startServer({ consent: consentPage(integrations as unknown as Integrations) });
const waiting = {
  integration: "Google Calendar",
  person: "Ada <A>",
  email: "ada@example.com",
  organization: null,
};

test("after a redirect from a provider, GET shows with whom the account will be connected", async () => {
  const queries: string[] = [];
  const found: Record<string, unknown> = { ...waiting };
  await using server = await consentOf({
    waiting: async (parameters) => (queries.push(String(parameters)), found),
    takeConsent: () => Promise.reject(new Error("Not by a GET.")),
  });
  const own = await server.send(get("/integrations/callback?state=s&code=c"));
  expect(queries).toEqual(["state=s&code=c"]);
  expect([own.headers["cache-control"], own.headers["referrer-policy"]]).toEqual(["no-store", "no-referrer"]);
  expect(own.text).toContain(
    "<h1>Connect your account?</h1>\n<p>Your account will be connected with <strong>Ada &lt;A&gt;</strong> (ada@example.com), as Google Calendar.</p>\n" +
      "<p>Continue only if you started this yourself: they can then use your account for what you consented to. Otherwise close this page; nothing will be connected.</p>\n" +
      '<form method="post"><button>Connect</button></form>',
  );
  Object.assign(found, { email: null, organization: "Harbour & Co" });
  expect((await server.send(get("/integrations/callback?state=s"))).text).toContain(
    "<p>Your account will be connected with the organization <strong>Harbour &amp; Co</strong>, as Google Calendar. <strong>Ada &lt;A&gt;</strong> requested it.</p>",
  );
});

test("a POST, and a refusal by the provider, are processed immediately", async () => {
  const taken: string[] = [];
  await using server = await consentOf({
    waiting: () => Promise.reject(new Error("Nothing is asked.")),
    takeConsent: async (parameters) => (taken.push(String(parameters)), true),
  });
  for (const request of [post("/integrations/callback?state=s"), get("/integrations/callback?error=denied")])
    expect((await server.send(request)).text).toContain(
      "<h1>Connected</h1>\n<p>The application is connected. You can close this page.</p>",
    );
  expect(taken).toEqual(["state=s", "error=denied"]);
});

test("a consent that was used, is too old or cannot be redeemed is refused", async () => {
  const outcome: { value: () => unknown } = { value: () => undefined };
  await using server = await consentOf({
    waiting: async () => undefined,
    takeConsent: async () => outcome.value(),
  });
  const used = [
    403,
    "FORBIDDEN",
    "This link has been used or has expired; refresh the integration to get a new one.",
  ];
  expect(refusal(await server.send(get("/integrations/callback")))).toEqual(used);
  expect(refusal(await server.send(post("/integrations/callback")))).toEqual(used);
  outcome.value = () => {
    throw new ConnectionFailed("The provider said no.", { retryable: true } as never);
  };
  const answer = await server.send(post("/integrations/callback"));
  expect(refusal(answer).slice(0, 2)).toEqual([502, "PROVIDER_ERROR"]);
  expect(answer.json.errors[0].extensions).toMatchObject({ provider: "oauth" });
  expect(server.log).toContainEqual(
    expect.objectContaining({ msg: "Completing an OAuth consent failed.", level: 40 }),
  );
  outcome.value = () => {
    throw new Error("Something else.");
  };
  expect(refusal(await server.send(post("/integrations/callback"))).slice(0, 2)).toEqual([500, "INTERNAL"]);
});

const key = "abcdefghjkm2";
const hit = { kind: "LINK", destination: "https://homes.example/a?utm_source=kept#b", utm: {} as unknown };

test("a tracker redirects with its parameters; existing ones in the URL are kept", async () => {
  const found = { ...hit, utm: { utm_source: "x", n: 1, yes: true, no: null, deep: { a: 1 } } };
  const { pool, queries } = scriptedDatabase([[/hit_tracker/, [found]]]);
  await using server = await startServer({ trackers: trackers(pool) });
  const answer = await server.send(get(`/t/${key}`));
  expect([answer.status, answer.headers.location, answer.text]).toEqual([
    302,
    `https://homes.example/a?utm_source=kept&n=1&yes=true&tracker=${key}#b`,
    "",
  ]);
  expect((await server.send({ ...get(`/t/${key}`), method: "HEAD" })).status).toBe(302);
  expect(queries.map(([, ...values]) => values)).toEqual([
    [key, true],
    [key, false],
  ]);
  found.kind = "PIXEL";
  const pixel = await server.send(get(`/t/${key}`));
  expect([pixel.status, pixel.headers["content-type"], pixel.headers["content-length"]]).toEqual([
    200,
    "image/gif",
    "42",
  ]);
  expect(pixel.text).toMatch(/^GIF89a/);
});

test("an inactive or unknown tracker, or one without a destination, is not found; only valid keys are queried", async () => {
  const found: (typeof hit)[] = [];
  const { pool, queries } = scriptedDatabase([[/hit_tracker/, found]]);
  await using server = await startServer({ trackers: trackers(pool) });
  for (const path of [
    "/t/ABCDEFGHJKM2",
    "/t/abcdefghjkm",
    "/t/abcdefghjkm22",
    "/t/abcdefghjkm1",
    "/t/abcdefghjkm0",
  ])
    expect([path, (await server.send(get(path))).status]).toEqual([path, 404]);
  expect(queries).toEqual([]);
  expect((await server.send(get(`/t/${key}`))).status).toBe(404);
  for (const destination of [null, "", "nowhere"]) {
    found[0] = { ...hit, destination: destination! };
    expect([destination, (await server.send(get(`/t/${key}`))).status]).toEqual([destination, 404]);
  }
  expect(queries).toHaveLength(4);
});

const agreement = {
  title: "Reservation agreement",
  status: "SENT",
  organization_name: "Harbour",
  project_title: "Quay <1>",
  signer_name: "Ann",
  signer_status: "PENDING",
  can_sign: false,
  file_id: "f1",
  filename: "agreement.pdf",
  file_number: 2,
  checksum: "c0ffee",
  url: null,
  certificate_url: null,
  consent_text: "I agree.",
  code_sent_to: null,
  expires_at: null,
  signed_at: null,
};
const certified = { key: "k", name: "certificate.pdf" };

test.each<[string, Partial<Record<keyof typeof agreement, unknown>>]>([
  [
    "You and all other signers have signed it.",
    { status: "SIGNED", signer_status: "SIGNED", certificate_url: certified },
  ],
  [
    "You and all other signers have signed it.",
    { status: "EXECUTED", signer_status: "SIGNED", certificate_url: certified },
  ],
  [
    "You have signed it. You will receive an email when everybody has.",
    { status: "SIGNED", signer_status: "SIGNED" },
  ],
  [
    "You have signed it. You will receive an email when everybody has.",
    { signer_status: "SIGNED", certificate_url: certified },
  ],
  [
    "Read it first. It can be signed until 2030-01-31.",
    { can_sign: true, expires_at: "2030-01-31T09:00:00Z" },
  ],
  ["Read it first. It can be signed.", { can_sign: true }],
  ["It cannot be signed at the moment.", {}],
  ["It was declined by a signer: you no longer need to sign it.", { status: "DECLINED" }],
  ["It was withdrawn: you no longer need to sign it.", { status: "VOIDED", signer_status: "SIGNED" }],
  ["It was not signed in time: you no longer need to sign it.", { status: "EXPIRED" }],
])("a link to sign shows: %s", async (shown, facts) => {
  const asking = { ...agreement, ...facts };
  const { pool } = scriptedDatabase([[/signing_request/, [{ result: asking }]]]);
  const addresses = { sign: ({ name }: { name: string }) => `https://localhost/files/${name}` };
  await using server = await startServer({ signing: signingPage({ pool, addresses: addresses as never }) });
  const { status, text } = await server.send(get("/sign/abc"));
  expect(status).toBe(200);
  const [, heading, parties, sentence] = /<h1>(.*)<\/h1>\n<p>(.*)<\/p>\n<p>(.*)<\/p>/.exec(text)!;
  expect([heading, parties, sentence]).toEqual([
    "Reservation agreement",
    "Harbour, Quay &lt;1&gt; · Ann",
    shown,
  ]);
  expect(text.includes('href="https://localhost/files/certificate.pdf"')).toBe(
    asking.certificate_url !== null,
  );
  expect(text.includes("<form")).toBe(asking.can_sign);
});

const signingForms = {
  can_sign: true,
  file_id: "f<1>",
  consent_text: "I agree & sign.",
  code_sent_to: null as string | null,
};
const addressesOfFiles = { sign: ({ name }: { name: string }) => `https://localhost/files/${name}` } as never;
const formsOf = (text: string) =>
  [...text.matchAll(/<form method="post">(?:(?!<\/form>)[^])*<\/form>/g)].map(([html]) =>
    html.replaceAll("\n", ""),
  );

test("to sign, a code is asked for first; then forms to sign and to decline are shown", async () => {
  const asking = { ...agreement, ...signingForms, checksum: "abc" };
  const { pool } = scriptedDatabase([[/signing_request/, [{ result: asking }]]]);
  await using server = await startServer({ signing: signingPage({ pool, addresses: addressesOfFiles }) });
  const first = await server.send(get("/sign/abc"));
  expect(first.text).toMatch("<p>SHA-256: abc</p>");
  expect(first.text).toMatch("<p>To sign or decline, you need a code that we send to you.</p>");
  expect(formsOf(first.text)).toEqual([
    '<form method="post"><input type="hidden" name="action" value="code"><button>Send me a code</button></form>',
  ]);
  asking.code_sent_to = "a•••@b.example";
  const { text } = await server.send(get("/sign/abc"));
  const code =
    '<p><label>Code <input name="code" inputmode="numeric" autocomplete="one-time-code" required maxlength="20"></label></p>';
  expect(text).toMatch("<p>A code was sent to a•••@b.example. It is valid for ten minutes.</p>");
  expect(formsOf(text)).toEqual([
    '<form method="post"><input type="hidden" name="action" value="code"><button>Send another code</button></form>',
    `<form method="post"><input type="hidden" name="action" value="sign"><input type="hidden" name="file" value="f&lt;1&gt;">${code}` +
      '<p><label><input type="checkbox" name="consent" value="yes" required> I agree &amp; sign.</label></p><button>Sign</button></form>',
    `<form method="post"><input type="hidden" name="action" value="decline">${code}` +
      '<p><label>Why <textarea name="reason" required maxlength="5000"></textarea></label></p><button>Decline</button></form>',
  ]);
});

test("the buttons of a link to sign send a code, sign or decline with a proof, and say what is wrong", async () => {
  const tried: { result: object }[] = [{ result: { proof: "proof-1" } }];
  const { pool, queries } = scriptedDatabase([
    [/try_signing_code/, tried],
    [/signing_request/, [{ result: { ...agreement, ...signingForms, code_sent_to: "a@b.example" } }]],
    [/./, [{ result: true }]],
  ]);
  await using server = await startServer({ signing: signingPage({ pool, addresses: addressesOfFiles }) });
  const press = async (fields: Record<string, string>) => {
    queries.length = 0;
    const answer = await server.send({
      ...post("/sign/abc"),
      headers: { accept: "text/html", "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams(fields).toString(),
    });
    const [, fault] = /<p role="alert"><strong>(.*)<\/strong><\/p>/.exec(answer.text) ?? [];
    const called = queries
      .filter(([text]) => /app_(public|hidden)\.\w+\(/.test(text))
      .map(([text, ...values]) => [/app_(?:public|hidden)\.(\w+)\(/.exec(text)![1], ...values]);
    return { status: answer.status, fault, called };
  };
  const shown = ["signing_request", "abc"];
  const done = (...called: unknown[][]) => ({ status: 200, fault: undefined, called: [...called, shown] });
  expect(await press({ action: "code" })).toEqual(done(["request_signing_code", "abc", "EMAIL"]));
  expect(await press({ action: "code", channel: "SMS" })).toEqual(
    done(["request_signing_code", "abc", "SMS"]),
  );
  const attempt = ["try_signing_code", "abc", "123456"];
  expect(await press({ action: "sign", code: " 123456 ", consent: "yes", file: "f1" })).toEqual(
    done(attempt, ["sign_agreement", "abc", "proof-1", true, "f1"]),
  );
  expect(await press({ action: "sign", code: "123456", consent: "on", file: "f1" })).toEqual(
    done(attempt, ["sign_agreement", "abc", "proof-1", false, "f1"]),
  );
  expect(await press({ action: "decline", code: "123456", reason: "Too late." })).toEqual(
    done(attempt, ["decline_agreement", "abc", "proof-1", "Too late."]),
  );
  // Without a proof, nothing else is called.
  tried[0] = { result: { triesLeft: 2 } };
  const refused = (status: number, fault: string, ...called: unknown[][]) => ({
    status,
    fault,
    called: [...called, shown],
  });
  expect(await press({ action: "sign", code: "123456", consent: "yes", file: "f1" })).toEqual(
    refused(400, "This code is wrong.", attempt),
  );
  tried[0] = { result: { retryAfterSeconds: 60 } };
  expect(await press({ action: "decline", code: "123456", reason: "No." })).toEqual(
    refused(429, "Too many wrong codes; try again tomorrow, or ask the sender of the agreement.", attempt),
  );
  for (const fields of [{}, { action: "other" }])
    expect(await press(fields as Record<string, string>)).toEqual(refused(400, "The form is incomplete."));
  expect((await press({ action: "decline", reason: "x".repeat(17_000) })).status).toBe(413);
});

test("a link to sign names what it links to, and is neither cached nor told to other sites", async () => {
  const asking = { ...agreement, url: { key: "u", name: "agreement.pdf" }, certificate_url: certified };
  const { pool, queries } = scriptedDatabase([[/signing_request/, [{ result: asking }]]]);
  await using server = await startServer({ signing: signingPage({ pool, addresses: addressesOfFiles }) });
  const { text, headers } = await server.send(get("/sign/abc", { "user-agent": "Browser 1" }));
  expect(headers).toMatchObject({ "cache-control": "no-store", "referrer-policy": "no-referrer" });
  expect([...text.matchAll(/<p><a href="(.*?)">(.*?)<\/a><\/p>/g)].map(([, ...link]) => link)).toEqual([
    ["https://localhost/files/agreement.pdf", "agreement.pdf, version 2"],
    ["https://localhost/files/certificate.pdf", "Certificate: who signed, when and from where"],
  ]);
  expect(text).not.toContain('role="alert"');
  // Its transaction is that of a visitor of the pages, with the facts that the certificate contains.
  const settings = JSON.stringify(queries);
  for (const value of ["plat_anonymous", "UI", "127.0.0.1", "Browser 1", headers["x-request-id"]])
    expect([value, settings.includes(String(value))]).toEqual([value, true]);
});

test("of a form to sign, single short texts are used, and faults that nobody can correct are refused", async () => {
  let fault = new CodedError("NOT_FOUND", "This link is unknown.");
  const calls: unknown[][] = [];
  const client = {
    async query(text: string, values: unknown[] = []) {
      const [, name] = /app_(?:public|hidden)\.(\w+)\(/.exec(text) ?? [];
      if (name && Array.isArray(values)) calls.push([name, ...values]);
      if (name === "try_signing_code") return { rows: [{ result: { proof: "proof-1" } }] };
      if (name === "sign_agreement" || name === "request_signing_code") throw fault;
      return { rows: [{ result: agreement }] };
    },
    release() {},
  };
  const pool = { connect: async () => client, query: client.query } as never;
  await using server = await startServer({ signing: signingPage({ pool, addresses: addressesOfFiles }) });
  const press = async (body: string, language = "en") => {
    calls.length = 0;
    const { status, text } = await server.send({
      ...post("/sign/abc"),
      headers: {
        accept: "text/html",
        "accept-language": language,
        "content-type": "application/x-www-form-urlencoded",
      },
      body,
    });
    return { status, alert: /<p role="alert"><strong>(.*)<\/strong><\/p>/.exec(text)?.[1] };
  };
  expect(await press("action=code")).toEqual({ status: 404, alert: undefined });
  fault = new CodedError("FORBIDDEN", "No.");
  expect((await press("action=code")).status).toBe(403);
  for (const [code, status] of [
    ["CONFLICT", 409],
    ["RATE_LIMITED", 429],
    ["BAD_USER_INPUT", 400],
    ["PROJECT_ARCHIVED", expect.any(Number)],
  ] as const) {
    fault = new CodedError(code, "Not <now>.");
    expect(await press("action=code")).toEqual({ status, alert: "Not &lt;now&gt;." });
  }
  // A field that was sent twice is not a text; a code is cut.
  await press(`action=sign&code=${"1".repeat(500)}&file=a&file=b&consent=+yes+`);
  const [tried, signed] = calls;
  expect(tried![2]).toMatch(/^1{1,100}$/);
  expect(signed).toEqual(["sign_agreement", "abc", "proof-1", true, ""]);
  expect((await press("action=other", "de")).alert).toBe("Das Formular ist unvollständig.");
});

test("a signed notification about text messages is accepted, with an empty response", async () => {
  const { pool, queries } = scriptedDatabase([]);
  let notice: unknown = { id: "m1" };
  const read: unknown[] = [];
  await using server = await startServer({
    messagesWebhook: messagesWebhook((given) => (read.push(given), notice) as never, pool),
  });
  const send = () =>
    server.send({
      path: "/webhooks/messages?a=1",
      headers: { "content-type": "application/x-www-form-urlencoded", "x-twilio-signature": "sig" },
      body: "Body=ja",
    });
  const answer = await send();
  expect([answer.status, answer.headers["content-type"], answer.text]).toEqual([
    200,
    "text/xml; charset=utf-8",
    "<Response/>",
  ]);
  expect(read).toEqual([{ path: "/webhooks/messages?a=1", body: "Body=ja", signature: "sig" }]);
  expect(queries).toEqual([
    ["select app_private.take_message_notice($1, $2)", '{"id":"m1"}', answer.headers["x-request-id"]],
  ]);
  notice = null;
  expect((await send()).text).toBe("<Response/>");
  notice = undefined;
  expect(refusal(await send())).toEqual([
    400,
    "BAD_USER_INPUT",
    "The signature is missing, or is not the signature of the provider.",
  ]);
  expect(queries).toHaveLength(1);
});

test("a signed event of the payment processor is accepted if it concerns one of our objects", async () => {
  const { pool, queries } = scriptedDatabase([]);
  let event: unknown = { id: "e1", objectId: "o1", accountId: null };
  const read: unknown[][] = [];
  await using server = await startServer({
    paymentsWebhook: paymentsWebhook(
      { readEvent: (...given: unknown[]) => (read.push(given), event) } as never,
      pool,
    ),
  });
  const send = (body: string | Buffer = '{"a": 1}') =>
    server.send({ path: "/webhooks/payments", headers: { "stripe-signature": "sig" }, body });
  const answer = await send();
  expect([answer.status, answer.json]).toEqual([200, { received: true }]);
  expect(read).toEqual([[Buffer.from('{"a": 1}'), "sig"]]);
  expect(queries).toEqual([["select app_private.take_processor_event($1)", JSON.stringify(event)]]);
  event = { id: "e2", objectId: null, accountId: "a1" };
  await send();
  event = { id: "e3", objectId: null, accountId: null };
  expect((await send()).json).toEqual({ received: true });
  expect(queries).toHaveLength(2);
  event = undefined;
  expect(refusal(await send())).toEqual([
    400,
    "BAD_USER_INPUT",
    "The signature is missing, too old, or is not the signature of the payment processor.",
  ]);
  await send("");
  expect(read.at(-1)![0]).toEqual(Buffer.alloc(0));
  // The whole limit may be used.
  expect((await send(Buffer.alloc(256 * 1024))).status).toBe(400);
  const tooLarge = await send(Buffer.alloc(256 * 1024 + 1));
  expect(refusal(tooLarge)).toEqual([413, "PAYLOAD_TOO_LARGE", "The body exceeds 256 KB."]);
  expect(tooLarge.json.errors[0].extensions.limit).toBe(262_144);
  expect(queries).toHaveLength(2);
});

test("a notification is not decompressed: the signature is for the received bytes", async () => {
  const { pool } = scriptedDatabase([]);
  await using server = await startServer({
    paymentsWebhook: paymentsWebhook({ readEvent: () => undefined } as never, pool),
  });
  const answer = await server.send({
    path: "/webhooks/payments",
    headers: { "content-encoding": "gzip" },
    body: "x",
  });
  expect(refusal(answer)).toEqual([400, "BAD_USER_INPUT", "The request body could not be read completely."]);
});

const appointment = {
  id: "a1",
  version: 3,
  status: "CONFIRMED",
  type: "SITE_VISIT",
  title: null as string | null,
  person: "Lena Lead" as string | null,
  project: "Harbour View" as string | null,
  starts_at: new Date("2027-03-01T15:00:00Z"),
  ends_at: new Date("2027-03-01T16:00:00Z"),
  time_zone: "America/Toronto",
  location: "1 Quay Street",
  video_url: "https://video.example/1",
  inserted_at: new Date("2027-01-01T00:00:00Z"),
  updated_at: new Date("2027-01-02T00:00:00Z"),
};
const lines = (text: string) => text.replaceAll("\r\n ", "").split("\r\n");

test("a feed has the appointments of its creator, as visible to them now", async () => {
  const appointments = [
    appointment,
    { ...appointment, id: "a2", title: "Second look", person: null, project: null, status: "REQUESTED" },
    { ...appointment, id: "a3", status: "CANCELLED" },
    { ...appointment, id: "a4", status: "RESCHEDULED" },
  ];
  const { pool, queries, released } = scriptedDatabase([
    [/feed_of/, [{ id: "f1", user_id: "u1", name: "Ada's" }]],
    [/calendar_appointments/, appointments],
  ]);
  const computed: unknown[][] = [];
  const counted: Pick<Compute, "run"> = {
    run: (tenant, task, ...work) => {
      computed.push([tenant, task]);
      return compute.run(tenant, task, ...work);
    },
  };
  await using server = await startServer({
    calendars: calendars(pool, "https://plat.example:8443", counted),
  });
  const answer = await server.send(get("/calendars/secret.ics"));
  const [head, ...events] = answer.text.split("BEGIN:VEVENT");
  expect(lines(head!)).toEqual(
    expect.arrayContaining([
      "PRODID:-//Plat//Appointments//EN",
      "METHOD:PUBLISH",
      "NAME:Ada's",
      "X-PUBLISHED-TTL:PT15M",
    ]),
  );
  expect(lines(events[0]!)).toEqual(
    expect.arrayContaining([
      "UID:a1@plat.example",
      "SEQUENCE:2",
      "DTSTAMP:20270102T000000Z",
      "DTSTART:20270301T150000Z",
      "DTEND:20270301T160000Z",
      "SUMMARY:Site visit – Lena Lead",
      "LOCATION:1 Quay Street",
      "DESCRIPTION:Harbour View\\nMar 1\\, 2027\\, 10:00 a.m. (America/Toronto)".replaceAll(" a.m.", " a.m."),
      "STATUS:CONFIRMED",
      "CREATED:20270101T000000Z",
      "LAST-MODIFIED:20270102T000000Z",
      "URL;VALUE=URI:https://video.example/1",
    ]),
  );
  expect(lines(events[1]!)).toEqual(expect.arrayContaining(["SUMMARY:Second look", "STATUS:TENTATIVE"]));
  expect(events[1]).toMatch(/DESCRIPTION:Mar 1/);
  expect(events.slice(2).map((event) => /STATUS:(\w+)/.exec(event)![1])).toEqual(["CANCELLED", "CANCELLED"]);
  expect(answer.headers).toMatchObject({
    "content-type": "text/calendar; charset=utf-8",
    "content-disposition": 'inline; filename="appointments.ics"',
    "cache-control": "private, no-cache",
    "referrer-policy": "no-referrer",
    etag: expect.stringMatching(/^"[\w-]{32}"$/),
  });
  expect(queries).toEqual([
    ["select * from app_private.feed_of($1)", createHash("sha256").update("secret").digest()],
    ["begin read only"],
    [
      "select set_config(s.key, s.value, true) from json_each_text($1) s",
      JSON.stringify({
        role: "plat_user",
        "plat.request_id": answer.headers["x-request-id"],
        "plat.channel": "INTEGRATION",
        "plat.access": "",
        "plat.user_id": "u1",
      }),
    ],
    ["select * from app_hidden.calendar_appointments()"],
    ["commit"],
    ["select app_private.note_synced('USER', $1)", "f1"],
  ]);
  expect(released).toEqual([undefined]);

  const { etag } = answer.headers as { etag: string };
  expect(computed).toEqual([["u1", "calendar"]]);
  for (const [known, status] of [
    [etag, 304],
    [`W/${etag}`, 304],
    [`"x" , ${etag}`, 304],
    [`"x"`, 200],
    [`x${etag}`, 200],
  ] as const)
    expect([
      known,
      (await server.send(get("/calendars/secret.ics", { "if-none-match": known }))).status,
    ]).toEqual([known, status]);
  // If the client's copy is current, only the query is executed.
  expect(computed).toHaveLength(3);
  appointments[0] = { ...appointment, title: "Moved" };
  const changed = await server.send(get("/calendars/secret.ics", { "if-none-match": etag }));
  expect([changed.status, changed.headers.etag === etag]).toEqual([200, false]);
});

test("an unknown or ended feed is not found, and a broken transaction ends its connection", async () => {
  const feeds: unknown[] = [];
  const failure = new Error("The server has gone.");
  const { pool, released } = scriptedDatabase([
    [/feed_of/, feeds],
    [/calendar_appointments/, failure],
  ]);
  await using server = await startServer({ calendars: calendars(pool, "https://plat.example", compute) });
  expect(refusal(await server.send(get("/calendars/secret.ics")))).toEqual([
    404,
    "NOT_FOUND",
    "This calendar does not exist or no longer exists.",
  ]);
  feeds.push({ id: "f1", user_id: "u1", name: "Ada's" });
  expect(refusal(await server.send(get("/calendars/secret.ics"))).slice(0, 2)).toEqual([500, "INTERNAL"]);
  expect(released).toEqual([failure]);
});

test("pages are in the language of the browser", async () => {
  const rows = {
    consent: { purpose: "NEWS", organization: "Harbour", is_confirmed: false },
    choice: { organization: "Harbour", kind_name: "new leads", wanted: true },
  };
  const { pool } = scriptedDatabase([
    [/consent_question/, [rows.consent]],
    [/confirm_consent/, [{}]],
    [/email_change_to_stop/, [{ found: "new@example.com" }]],
    [/stop_email_change/, [{ found: true }]],
  ]);
  await using server = await startServer({
    confirm: confirmPage(pool),
    stopEmailChange: stopEmailChangePage(pool),
  });
  const texts = async (language: string, path: string, method: string) => {
    const answer = await server.send({ ...get(path, { "accept-language": language }), method });
    expect(answer.text).toContain(`<html lang="${language}">`);
    expect(answer.headers["vary"]).toMatch(/accept-language/i);
    return [...answer.text.matchAll(/<(?:h1|p|button)>(.*?)<\/(?:h1|p|button)>/g)].map(([, text]) => text);
  };
  for (const [path, method] of [
    ["/confirm/abc", "GET"],
    ["/stop-email-change/abc", "GET"],
    ["/stop-email-change/abc", "POST"],
  ] as const) {
    const english = await texts("en", path, method);
    expect(english.length).toBeGreaterThan(2);
    for (const language of ["fr", "de", "es"]) {
      const translated = await texts(language, path, method);
      expect(translated).toHaveLength(english.length);
      expect(translated.filter((text) => english.includes(text))).toEqual([]);
    }
  }
  rows.consent.is_confirmed = true;
  expect(await texts("de", "/confirm/abc", "GET")).toEqual([
    "Sie erhalten Neuigkeiten von Harbour",
    "Danke. Sie können diese Seite schließen.",
  ]);
});

test("a notification of the signing provider is accepted if signed with the key of its integration", async () => {
  const id = "0198a7c2-0000-7000-8000-000000000001";
  const webhookKey = "webhook key";
  const body = '{"event":"envelope-completed"}';
  const sign = (text: string, by = webhookKey) => createHmac("sha256", by).update(text).digest("base64");
  let account: unknown = { config: {}, credentials: { webhookKey }, policy: {} };
  const opened: string[] = [];
  const integrations = {
    account: async (of: string) => {
      opened.push(of);
      if (account instanceof Error) throw account;
      return account;
    },
  } as unknown as Integrations;
  const row: { id: string | null } = { id: "i1" };
  const { pool, queries } = scriptedDatabase([[/integration_of_envelope/, [row]]]);
  await using server = await startServer({ signingWebhook: signingWebhook(integrations, pool) });
  const send = (headers: Record<string, string>, path = `/webhooks/signing/${id}`) =>
    server.send({ method: "POST", path, headers: { "content-type": "application/json", ...headers }, body });
  const refused = [
    400,
    "BAD_USER_INPUT",
    "The signature is missing, or is not the signature of the provider.",
  ];

  const taken = await send({ "x-docusign-signature-1": sign(body) });
  expect([taken.status, taken.json]).toEqual([200, { received: true }]);
  expect(queries).toEqual([
    ["select app_private.integration_of_envelope($1) as id", id],
    ["select app_private.take_envelope_notice($1)", id],
  ]);
  expect(opened).toEqual(["i1"]);
  // While a key is rotated, there are several signatures.
  const replaced = { "x-docusign-signature-1": sign(body, "old"), "x-docusign-signature-12": sign(body) };
  expect((await send(replaced)).status).toBe(200);

  // Notifications without an agreement or a signature cause no query.
  queries.splice(0);
  const good = { "x-docusign-signature-1": sign(body) };
  for (const path of ["1", `${id}0`, `x${id}`, id.replace("a", "g")])
    expect(refusal(await send(good, `/webhooks/signing/${path}`))).toEqual(refused);
  for (const name of [
    "x-docusign-signature",
    "x-docusign-signature-123",
    "x-docusign-signature-a",
    "x-signature-1",
  ])
    expect(refusal(await send({ [name]: sign(body) }))).toEqual(refused);
  expect(refusal(await send({ "ax-docusign-signature-1": sign(body) }))).toEqual(refused);
  expect(queries).toEqual([]);

  for (const signature of ["", sign(`${body} `), sign(body, "another key"), sign(body).slice(1)])
    expect(refusal(await send({ "x-docusign-signature-1": signature }))).toEqual(refused);
  for (const none of [
    undefined,
    { credentials: {} },
    { credentials: { webhookKey: "" } },
    new Error("closed"),
  ]) {
    account = none;
    expect(refusal(await send(good))).toEqual(refused);
  }
  opened.splice(0);
  row.id = null;
  expect(refusal(await send(good))).toEqual(refused);
  expect(opened).toEqual([]);
  expect(queries.filter(([text]) => text.includes("take_envelope_notice"))).toEqual([]);
});
