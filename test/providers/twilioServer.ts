/** A server that implements the API of Twilio: accepts and lists messages, with configurable responses. */
import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import express, { type Response } from "express";
import { createTwilio, signatureOf, type TwilioOptions } from "../../src/providers/sms/twilio.ts";
import type { SmsProvider } from "../../src/providers/sms/index.ts";

export interface Listed {
  sid: string;
  to: string;
  body: string;
  status: string;
  direction: string;
  date_created: string;
}

export interface TwilioServer {
  api: string;
  /** Accepted messages, oldest first. */
  messages: Listed[];
  /** The forms and headers of all attempts to send. */
  attempts: { form: Record<string, string>; authorization: string | undefined }[];
  /** Number of requests for the list. */
  lists: number;
  /** Sets the handling of messages from now on; `take` accepts the message and returns the real response. */
  answers(answer: (response: Response, take: () => Listed, form: Record<string, string>) => unknown): void;
  /** Refuses like the real one. */
  refusal(response: Response, status: number, code: number): void;
  /** The production provider, configured for this server. */
  provider(more?: Partial<TwilioOptions>): SmsProvider;
  close(): Promise<void>;
}

export const baseUrl = "https://plat.example";
const authToken = "token of the tests";

/** A signed notification of the provider to /webhooks/messages. */
export function notice(params: Record<string, string>, messageId?: string, token = authToken) {
  const path = `/webhooks/messages${messageId ? `?message=${messageId}` : ""}`;
  const form = new URLSearchParams(params);
  return { path, body: form.toString(), signature: signatureOf(token, `${baseUrl}${path}`, form) };
}

export const sidOf = (): string => `SM${randomBytes(16).toString("hex")}`;

export async function startTwilioServer(): Promise<TwilioServer> {
  const list = "/2010-04-01/Accounts/AC1/Messages.json";
  const messages: Listed[] = [];
  const attempts: TwilioServer["attempts"] = [];
  const plain = (response: Response, take: () => Listed) => void response.status(201).json(take());
  let answer: Parameters<TwilioServer["answers"]>[0] = plain;
  let lists = 0;
  const app = express();
  app.use(express.urlencoded({ extended: false }));
  app.post(list, (request, response) => {
    const form = request.body as Record<string, string>;
    attempts.push({ form, authorization: request.get("authorization") });
    void answer(
      response,
      () => {
        const taken = {
          sid: sidOf(),
          to: form.To!,
          body: form.Body!,
          status: "queued",
          direction: "outbound-api",
          date_created: new Date().toUTCString().replace("GMT", "+0000"),
        };
        messages.push(taken);
        return taken;
      },
      form,
    );
  });
  app.get(list, (request, response) => {
    lists += 1;
    const page = Number(request.query.Page ?? 0);
    const size = Number(request.query.PageSize);
    const found = messages.filter(({ to }) => to === request.query.To).toReversed();
    const next = `${list}?${new URLSearchParams({ To: String(request.query.To), PageSize: `${size}`, Page: `${page + 1}` })}`;
    response.json({
      messages: found.slice(page * size, (page + 1) * size),
      next_page_uri: found.length > (page + 1) * size ? next : null,
    });
  });
  const server = app.listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  const api = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    api,
    messages,
    attempts,
    get lists() {
      return lists;
    },
    answers: (next) => void (answer = next),
    refusal: (response, status, code) =>
      void response.status(status).json({ code, status, message: "To: +14165550100 is private" }),
    provider: (more) =>
      createTwilio({
        accountSid: "AC1",
        authToken,
        sender: "+14165550199",
        api,
        baseUrl,
        notices: true,
        timeoutMs: 2000,
        ...more,
      }),
    close: () =>
      new Promise((done) => {
        server.closeAllConnections();
        server.close(() => done());
      }),
  };
}
