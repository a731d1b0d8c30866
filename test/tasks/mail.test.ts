import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import PostalMime from "postal-mime";
import {
  createMailProvider,
  MailDeferred,
  MailRefused,
  type MailMessage,
} from "../../src/providers/mail/index.ts";
import { organizationContacted, organizationInvite } from "../../src/providers/mail/mailTemplates.ts";
import { answer, startSmtpServer, type SmtpServer } from "./smtp.ts";
import { testCertificate } from "../harness/certificate.ts";

const from = "Plat <no-reply@plat.example>";
const message: MailMessage = {
  key: "test 1",
  to: "ada@example.com",
  replyTo: { name: "Vi", address: "vi@example.com" },
  subject: "Grüße",
  text: "Hello Ada\n",
  html: "<p>Hello Ada</p>",
};

let dataDir: string;
let server: SmtpServer | undefined;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "plat-mail-"));
});

afterEach(async () => {
  await server?.close();
  server = undefined;
  await rm(dataDir, { recursive: true, force: true });
});

/** Sends through the given server and ends the connection. */
async function sendBy(url: string, mail: MailMessage = message): Promise<{ id: string }> {
  const provider = createMailProvider({ smtpUrl: url, dataDir, from });
  try {
    return await provider.send(mail);
  } finally {
    await provider.close();
  }
}

const failure = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    () => Promise.reject(new Error("It was sent.")),
    (error: Error) => error,
  );

describe("outbox", () => {
  test("writes a complete and private .eml", async () => {
    const provider = createMailProvider({ dataDir, from });
    const { id } = await provider.send({ ...message, unsubscribe: "mailto:stop@plat.example" });
    await provider.close();
    const folder = join(dataDir, "outbox");
    expect(await readdir(folder)).toEqual([id]);
    expect((await stat(join(folder, id))).mode & 0o777).toBe(0o600);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    const mail = await PostalMime.parse(await readFile(join(folder, id)));
    expect(mail).toMatchObject({
      from: { name: "Plat", address: "no-reply@plat.example" },
      to: [{ address: "ada@example.com" }],
      replyTo: [{ name: "Vi", address: "vi@example.com" }],
      subject: "Grüße",
      text: expect.stringMatching(/^Hello Ada\s+$/),
      html: expect.stringContaining("<p>Hello Ada</p>"),
    });
    const headers = Object.fromEntries(mail.headers.map(({ key, value }) => [key, value]));
    expect(headers).toMatchObject({
      "auto-submitted": "auto-generated",
      "list-unsubscribe": "<mailto:stop@plat.example>",
    });
  });

  test("the same mail has the same Message-ID, another one has another", async () => {
    const provider = createMailProvider({ dataDir, from });
    for (const key of ["a", "a", "b"]) await provider.send({ ...message, key });
    const names = (await readdir(join(dataDir, "outbox"))).sort();
    const ids = await Promise.all(
      names.map(
        async (name) => (await PostalMime.parse(await readFile(join(dataDir, "outbox", name)))).messageId,
      ),
    );
    expect(names).toHaveLength(3);
    expect(new Set(ids).size).toBe(2);
    expect(ids[0]).toMatch(/^<[0-9a-f]{40}@plat\.example>$/);
  });

  test("a folder that cannot be written is retried", async () => {
    await writeFile(join(dataDir, "outbox"), "in the way");
    const error = await failure(createMailProvider({ dataDir, from }).send(message));
    expect(error).toBeInstanceOf(MailDeferred);
  });
});

describe("SMTP", () => {
  test("sends with a password, without encryption on this machine only", async () => {
    server = await startSmtpServer({
      allowInsecureAuth: true,
      onAuth: ({ username, password }, _session, done) =>
        username === "plat" && password === "p@ss word"
          ? done(null, { user: username })
          : done(answer(535, "no")),
    });
    const { id } = await sendBy(`smtp://plat:p%40ss%20word@127.0.0.1:${server.port}`);
    expect(server.mails).toHaveLength(1);
    expect(server.mails[0]).toMatchObject({
      user: "plat",
      to: ["ada@example.com"],
      email: { subject: "Grüße", messageId: id },
    });
    // Wrong credentials must be corrected by the operator: the mail waits.
    const error = await failure(sendBy(`smtp://plat:secret-word@127.0.0.1:${server.port}`));
    expect(error).toBeInstanceOf(MailDeferred);
    expect(error.message).not.toMatch(/secret-word|plat:/);
  });

  test("sends no password unencrypted to another machine", async () => {
    const seen: string[] = [];
    server = await startSmtpServer({
      allowInsecureAuth: true,
      onAuth: ({ username }, _session, done) => {
        seen.push(username!);
        done(null, { user: username });
      },
    });
    // This address is also this machine, but is not a loopback address.
    expect(await failure(sendBy(`smtp://plat:word@0.0.0.0:${server.port}`))).toBeInstanceOf(MailDeferred);
    expect(seen).toEqual([]);
  });

  test("uses STARTTLS, and verifies the certificate", async () => {
    const { cert, key } = await testCertificate();
    server = await startSmtpServer({ cert, key });
    expect(await failure(sendBy(`smtp://127.0.0.1:${server.port}`))).toBeInstanceOf(MailDeferred);
    await sendBy(`smtp://127.0.0.1:${server.port}?tls.rejectUnauthorized=false`);
    expect(server.mails).toMatchObject([{ encrypted: true }]);
  });

  test("a 4xx response is retried, and then succeeds", async () => {
    let attempts = 0;
    server = await startSmtpServer({
      onRcptTo: (_address, _session, done) => done(attempts++ === 0 ? answer(451, "greylisted") : null),
    });
    const url = `smtp://127.0.0.1:${server.port}`;
    expect(await failure(sendBy(url))).toBeInstanceOf(MailDeferred);
    await sendBy(url);
    expect(server.mails).toHaveLength(1);
  });

  test.each([
    ["an unknown mailbox", { onRcptTo: (_a, _s, done) => done(answer(550, "no such user ada@example.com")) }],
    [
      "an unwanted message",
      { onData: (stream, _s, done) => stream.resume().on("end", () => done(answer(554, "spam"))) },
    ],
  ] as [string, Parameters<typeof startSmtpServer>[0]][])("%s is final", async (_name, options) => {
    server = await startSmtpServer(options);
    const error = await failure(sendBy(`smtp://127.0.0.1:${server.port}`));
    expect(error).toBeInstanceOf(MailRefused);
    expect(error.message).not.toContain("ada@example.com");
  });

  test("a refused sender and an unreachable server are retried", async () => {
    server = await startSmtpServer({
      onMailFrom: (_address, _session, done) => done(answer(553, "not yours")),
    });
    const { port } = server;
    expect(await failure(sendBy(`smtp://127.0.0.1:${port}`))).toBeInstanceOf(MailDeferred);
    await server.close();
    server = undefined;
    expect(await failure(sendBy(`smtp://127.0.0.1:${port}`))).toBeInstanceOf(MailDeferred);
  });

  test("many concurrent mails are sent once each", async () => {
    server = await startSmtpServer();
    const provider = createMailProvider({ smtpUrl: `smtp://127.0.0.1:${server.port}`, dataDir, from });
    await Promise.all(
      Array.from({ length: 25 }, (_, n) =>
        provider.send({ ...message, key: `many ${n}`, to: `p${n}@example.com` }),
      ),
    );
    await provider.close();
    expect(new Set(server.mails.map(({ to }) => to[0])).size).toBe(25);
  });
});

describe("user-written text remains text", () => {
  const evil = 'Vi\r\nBcc: everybody@example.com\r\n\r\n<script>alert(1)</script>"\u202egpj.exe';

  test("in headers", async () => {
    server = await startSmtpServer();
    await sendBy(`smtp://127.0.0.1:${server.port}`, {
      ...message,
      replyTo: { name: `${evil}, a@example.com`, address: "vi@example.com" },
      unsubscribe: "mailto:x@example.com>\r\nX-Evil: 1",
      ...organizationContacted({
        name: evil,
        email: "vi@example.com",
        phone: null,
        message: "Hi",
        organization: evil,
      }),
    });
    const { email, to } = server.mails[0]!;
    expect(to).toEqual(["ada@example.com"]);
    expect(email.bcc).toBeUndefined();
    expect(email.headers.map(({ key }) => key)).not.toEqual(expect.arrayContaining(["bcc"]));
    expect(email.headers.map(({ key }) => key)).not.toEqual(expect.arrayContaining(["x-evil"]));
    expect(email.replyTo).toEqual([
      { name: expect.not.stringMatching(/[\r\n\u202e]/), address: "vi@example.com" },
    ]);
    expect(email.subject).toMatch(/^Message from Vi Bcc: everybody@example.com/);
  });

  test("in an address, which is never parsed as a list", async () => {
    server = await startSmtpServer();
    const url = `smtp://127.0.0.1:${server.port}`;
    await failure(sendBy(url, { ...message, to: "ada@example.com, eve@example.com" }));
    await failure(sendBy(url, { ...message, to: "ada@example.com>\r\nRCPT TO:<eve@example.com" }));
    expect(server.mails.flatMap(({ to }) => to).filter((to) => /^eve@/.test(to))).toEqual([]);
  });

  test("in text and HTML", () => {
    const { text, html } = organizationInvite({
      organization: evil,
      invitedBy: "<b>Ada</b>",
      role: "ADMIN",
      message: 'Line 1\n-- \nClick <a href="https://evil.example">here</a>',
      token: "t",
      link: "javascript:alert(1)",
      expiresAt: new Date("2026-12-01T12:00:00Z"),
    });
    expect(html).not.toMatch(/<script|<b>|evil\.example"|javascript:/);
    expect(html).toContain("&lt;script&gt;");
    expect(html).toContain("Line 1<br>--");
    expect(text).toContain("> Line 1\n> --\n> Click");
    expect(text).toContain("1 December 2026 at 12:00 UTC");
  });
});
