/**
 * Responses in server-sent events, for subscriptions and event streams, without a database; test/api tests both with
 * one.
 */
import { EventEmitter } from "node:events";
import { get } from "node:https";
import type { Response } from "express";
import { afterEach, expect, jest, test } from "@jest/globals";
import { OperationWork } from "../../src/admission/operationWork.ts";
import { partyOf } from "../../src/admission/party.ts";
import { requests } from "../../src/admission/semaphores.ts";
import { queryLimits } from "../../src/admission/queryLimits.ts";
import { CodedError, internalMessage } from "../../src/base/errors.ts";
import { Positions } from "../../src/database/position.ts";
import type { Language } from "../../src/messages/catalogue.ts";
import type { RequestState, SubscriptionResult } from "../../src/http/requestState.ts";
import { answerOnce, writeSubscription } from "../../src/http/subscription.ts";
import type { EventStream } from "../../src/live/eventStream.ts";
import type { Live } from "../../src/live/live.ts";
import { startServer } from "./server.ts";
import { until } from "../harness/until.ts";

afterEach(() => void jest.useRealTimers());

/** A response that records what is written; `isFull` simulates a slow reader. */
class Written extends EventEmitter {
  status = 0;
  headers: Record<string, string> = {};
  texts: string[] = [];
  ended = false;
  isFull = false;
  writeHead(status: number, headers: Record<string, string>) {
    Object.assign(this, { status, headers });
  }
  write(text: string) {
    this.texts.push(text);
    return !this.isFull;
  }
  end(text: string) {
    this.texts.push(text);
    this.ended = true;
    this.emit("close");
  }
}

const inEvents = {
  status: 200,
  headers: {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
  },
};
const heartbeat = ":\n\n";
const complete = "event: complete\ndata:\n\n";
const next = (value: unknown) => `event: next\ndata: ${JSON.stringify(value)}\n\n`;

type Answers = (work: OperationWork, state: RequestState) => AsyncIterableIterator<SubscriptionResult>;

function subscription(answers: Answers, positions?: Positions, language: Language = "en") {
  const response = new Written();
  const state = { id: "r1", errorCodes: new Set<string>() } as unknown as RequestState;
  const work = new OperationWork(partyOf("u1", undefined));
  const done = writeSubscription(response as unknown as Response, answers(work, state), {
    state,
    work,
    positions,
    language,
  });
  return { response, state, work, done };
}

test("a single response is one event, followed by the end", () => {
  const response = new Written();
  answerOnce(response as unknown as Response, '{"data":1}');
  expect(response).toMatchObject({ ...inEvents, texts: [`event: next\ndata: {"data":1}\n\n${complete}`] });
});

test("each result of a subscription is an event with its position; the last event completes it", async () => {
  const positions = new Positions("7");
  const { response, state, done } = subscription(async function* (work) {
    yield { data: { n: 1 } };
    work.position = 5n;
    yield { data: { n: 2 } };
    yield { data: { n: 3 } };
  }, positions);
  await done;
  expect(response).toMatchObject(inEvents);
  expect(response.texts).toEqual([
    heartbeat,
    next({ data: { n: 1 } }),
    next({ data: { n: 2 }, extensions: { position: positions.write(5n) } }),
    next({ data: { n: 3 } }),
    complete,
  ]);
  expect(state.errorCodes.size).toBe(0);
});

test("without positions, responses contain none", async () => {
  const { response, done } = subscription(async function* (work) {
    work.position = 5n;
    yield { data: {} };
  });
  await done;
  expect(response.texts[1]).toBe(next({ data: {} }));
});

test("refuses a result that read too much, and continues with the next one", async () => {
  const { response, work, state, done } = subscription(async function* (own) {
    own.bytesRead = queryLimits.bytes;
    yield { data: { n: 1 } };
    own.bytesRead = queryLimits.bytes + 1;
    yield { data: { n: 2 } };
    yield { data: { n: own.bytesRead } };
  });
  await done;
  const { message } = work.tooLarge();
  expect(response.texts).toEqual([
    heartbeat,
    next({ data: { n: 1 } }),
    next({
      errors: [
        { message, extensions: { limit: queryLimits.bytes, code: "LIMIT_EXCEEDED", requestId: "r1" } },
      ],
    }),
    next({ data: { n: 0 } }),
    complete,
  ]);
  expect([...state.errorCodes]).toEqual(["LIMIT_EXCEEDED"]);
});

test("reports the reason before the end", async () => {
  const { response, state, done } = subscription(async function* (_work, own) {
    yield { data: {} };
    own.subscriptionError = new CodedError("UNAUTHENTICATED", "Sign in again.");
  });
  await done;
  const extensions = { code: "UNAUTHENTICATED", requestId: "r1" };
  expect(response.texts.slice(2)).toEqual([
    next({ errors: [{ message: "Sign in again.", extensions }] }),
    complete,
  ]);
  expect([...state.errorCodes]).toEqual(["UNAUTHENTICATED"]);
});

test("a slow reader is waited for; nothing is written to a closed one", async () => {
  const requested: number[] = [];
  const { response, state, done } = subscription(async function* () {
    for (const n of [1, 2, 3]) {
      requested.push(n);
      yield { data: { n } };
    }
  });
  response.isFull = true;
  const written = () => response.texts.length;
  await until(() => written() >= 2);
  for (let turns = 0; turns < 10; turns += 1) await new Promise(setImmediate);
  expect([requested, written()]).toEqual([[1], 2]);
  response.emit("drain");
  await until(() => written() >= 3);
  expect(requested).toEqual([1, 2]);
  state.subscriptionError = new CodedError("UNAUTHENTICATED", "Sign in again.");
  response.emit("close");
  await done;
  expect([requested, written(), response.ended]).toEqual([[1, 2, 3], 3, false]);
});

test("a reader who disconnects gets no end event", async () => {
  const answers = Promise.withResolvers<void>();
  const { response, done } = subscription(async function* () {
    await answers.promise;
    yield* [];
  });
  response.emit("close");
  answers.resolve();
  await done;
  expect([response.texts, response.ended]).toEqual([[heartbeat], false]);
});

test("every 15 seconds a comment is sent, until the stream has closed", async () => {
  jest.useFakeTimers({ doNotFake: ["setImmediate", "nextTick", "queueMicrotask"] });
  const { response } = subscription(async function* () {
    await new Promise(() => {});
    yield {};
  });
  jest.advanceTimersByTime(14_999);
  expect(response.texts).toEqual([heartbeat]);
  jest.advanceTimersByTime(1);
  expect(response.texts).toEqual([heartbeat, heartbeat]);
  response.emit("close");
  jest.advanceTimersByTime(60_000);
  expect(response.texts).toHaveLength(2);
  expect(jest.getTimerCount()).toBe(0);
});

const bearer = {
  claims: { userId: "u1" },
  facts: { userId: "u1", sessionId: "s1", tokenSha256: null },
  expiresAt: undefined,
} as never as Awaited<ReturnType<Live["redeem"]>>;

const inGerman =
  "Ein interner Fehler ist aufgetreten. Versuchen Sie es noch einmal; wenn er wieder auftritt, nennen Sie die Id der Anfrage.";

test("errors of a subscription are in the language of its reader", async () => {
  const errors = [{ message: internalMessage, extensions: { code: "INTERNAL" } }];
  const { response, done } = subscription(
    async function* (_work, own) {
      yield { data: { a: null }, errors };
      own.subscriptionError = new CodedError("INTERNAL", internalMessage);
    },
    undefined,
    "de",
  );
  await done;
  const key = "somethingWentWrongOnOurSide";
  expect(response.texts.slice(1)).toEqual([
    next({
      data: { a: null },
      errors: [{ message: inGerman, extensions: { code: "INTERNAL", key } }],
    }),
    next({ errors: [{ message: inGerman, extensions: { code: "INTERNAL", requestId: "r1", key } }] }),
    complete,
  ]);
});

test("after the last event, no comment follows while its reader takes the rest", async () => {
  jest.useFakeTimers({ doNotFake: ["setImmediate", "nextTick", "queueMicrotask"] });
  const { response, done } = subscription(async function* () {
    yield { data: {} };
  });
  response.emit = () => true;
  await done;
  expect(response.ended).toBe(true);
  expect(jest.getTimerCount()).toBe(0);
});

/** Live events without a database; records the calls. */
function testLive() {
  const calls: unknown[][] = [];
  const opened = Promise.withResolvers<EventStream>();
  const closed = Promise.withResolvers<void>();
  const note = (...call: unknown[]) => void calls.push(call);
  const live = {
    async bearer(header: string | undefined) {
      note("bearer", header);
      return header === "Bearer good" ? bearer : undefined;
    },
    async redeem(ticket: string) {
      note("redeem", ticket);
      return bearer;
    },
    async issue(of: unknown) {
      note("issue", of === bearer);
      return { ticket: "t", expiresAt: "later" };
    },
    async begin(_claims: unknown, organization: string, projectId: string | undefined) {
      note("begin", organization, projectId);
      return { organizationId: "o1", projectId, head: 9 };
    },
    take(owner: { ip?: string }) {
      note("take", { ...owner, ip: typeof owner.ip });
      return () => note("release");
    },
    async open(stream: EventStream, of: unknown, organizationId: string) {
      note("open", of === bearer, organizationId, stream.position);
      opened.resolve(stream);
      return () => {
        note("closed");
        closed.resolve();
      };
    },
  } as unknown as Live;
  return { live, calls, closed: closed.promise, opened: opened.promise };
}

const signedIn = { authorization: "Bearer good" };

/** Opens a stream, ends it like the service, and returns what its reader received. */
async function readStream(query: string, headers: Record<string, string> = signedIn) {
  const { live, calls, opened, closed } = testLive();
  await using server = await startServer({ live });
  const answering = server.send({ method: "GET", path: `/events/stream${query}`, headers });
  const first = await Promise.race([answering, opened]);
  if ("status" in first) return { answer: first, calls };
  first.end(new CodedError("UNAUTHENTICATED", "Sign in again."));
  const answer = await answering;
  await closed;
  return { answer, calls };
}

const refusal = ({ status, json }: { status: number; json: any }) => [
  status,
  json.errors[0].extensions.code,
  json.errors[0].extensions.field,
  json.errors[0].message,
];

test("a stream begins at the latest event, has the rights of its token, and releases its slot", async () => {
  const { answer, calls } = await readStream("?organizationId=harbour");
  expect(answer.status).toBe(200);
  expect(answer.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
  expect(calls.slice(0, 4)).toEqual([
    ["bearer", "Bearer good"],
    ["begin", "harbour", undefined],
    ["take", { userId: "u1", organizationId: "o1", ip: "string" }],
    ["open", true, "o1", 9],
  ]);
  expect(calls.slice(4).toSorted()).toEqual([["closed"], ["release"]]);
  const data = /event: end\ndata: (.*)\n/.exec(answer.text)?.[1] ?? "null";
  expect(JSON.parse(data)).toEqual({
    message: "Sign in again.",
    code: "UNAUTHENTICATED",
    requestId: answer.headers["x-request-id"],
  });
});

test.each([
  ["&after=3", {}, 3],
  ["&after=", {}, 9],
  ["", { "last-event-id": "4" }, 4],
  ["&after=3", { "last-event-id": "4" }, 4],
  ["&after=3", { "last-event-id": "" }, 3],
] as [string, Record<string, string>, number][])(
  "with %s and the headers %j it resumes after %d",
  async (query, headers, position) => {
    const { calls } = await readStream(`?organizationId=o${query}`, { ...signedIn, ...headers });
    expect(calls.find(([name]) => name === "open")).toEqual(["open", true, "o1", position]);
  },
);

test("accepts a ticket in the URL instead of a token", async () => {
  const { calls } = await readStream("?organizationId=o&ticket=abc&projectId=p1", {});
  expect(calls.slice(0, 2)).toEqual([
    ["redeem", "abc"],
    ["begin", "o", "p1"],
  ]);
});

const otherParameter =
  "A stream only accepts the parameters organizationId, after, names, projectId, subjectType, subjectId, ticket.";
const once = "Send each parameter only once, with commas between several names.";
const noToken =
  "Event streams require a token in the Authorization header, or a ticket from POST /events/tickets in the URL.";
test.each([
  ["?organizationId=o&x=1", signedIn, [400, "BAD_USER_INPUT", "x", otherParameter]],
  [`?${"y".repeat(101)}=1`, signedIn, [400, "BAD_USER_INPUT", "y".repeat(100), otherParameter]],
  ["?organizationId=o&names=a&names=b", signedIn, [400, "BAD_USER_INPUT", "names", once]],
  [`?organizationId=${"o".repeat(2_001)}`, signedIn, [400, "BAD_USER_INPUT", "organizationId", once]],
  [
    "?after=1&organizationId=",
    signedIn,
    [
      400,
      "BAD_USER_INPUT",
      "organizationId",
      "A stream belongs to one organization: specify its id or slug.",
    ],
  ],
  [
    "?organizationId=o&ticket=t",
    signedIn,
    [
      400,
      "BAD_USER_INPUT",
      "ticket",
      "Send either a token in the Authorization header or a ticket, not both.",
    ],
  ],
  ["?organizationId=o", {}, [401, "UNAUTHENTICATED", undefined, noToken]],
  ["?organizationId=o", { authorization: "Bearer bad" }, [401, "UNAUTHENTICATED", undefined, noToken]],
  [
    "?organizationId=o",
    { ...signedIn, accept: "application/json" },
    [406, "BAD_USER_INPUT", undefined, "Events are sent as text/event-stream; accept this type."],
  ],
  [
    "?organizationId=o&after=x",
    signedIn,
    [400, "BAD_USER_INPUT", "after", "A sequence must be a whole number, as a string."],
  ],
  [
    "?organizationId=o&after=10",
    signedIn,
    [400, "BAD_USER_INPUT", "after", "There is no event with this sequence number yet."],
  ],
] as [string, Record<string, string>, unknown[]][])(
  "%s with %j opens no stream",
  async (query, headers, expected) => {
    const { answer, calls } = await readStream(query, headers);
    expect(refusal(answer)).toEqual(expected);
    expect(calls.filter(([name]) => name === "take" || name === "open")).toEqual([]);
  },
);

test.each(["text/event-stream", "text/*", "*/*", "Text/Event-Stream;q=1", "text/html, text/event-stream"])(
  "clients that accept %s get events",
  async (accept) => {
    const { answer } = await readStream(`?organizationId=${"o".repeat(2_000)}`, { ...signedIn, accept });
    expect(answer.status).toBe(200);
  },
);

test("the parameters of a stream are in its URL: names in any order, ids in any case", async () => {
  const { live, calls, opened } = testLive();
  await using server = await startServer({ live });
  const query =
    "?organizationId=o&names=lead.updated,%20lead.created,,&subjectType=LEAD&subjectId=ABC&projectId=p1";
  const answering = server.send({ method: "GET", path: `/events/stream${query}`, headers: signedIn });
  const stream = await opened;
  const keys: string[] = [];
  stream.take({
    after: 9,
    upto: 9,
    events: [],
    once: (key: string) => void keys.push(key),
  } as never);
  stream.end(new CodedError("UNAUTHENTICATED", "Sign in again."));
  await answering;
  expect(keys).toEqual([
    'sse 9 {"names":["lead.created","lead.updated"],"projectId":"p1","subjectType":"LEAD","subjectId":"abc"}',
  ]);
  expect(calls).toContainEqual(["begin", "o", "p1"]);
});

test("a ticket requires a token, is created by POST, and is not cached", async () => {
  const { live, calls } = testLive();
  await using server = await startServer({ live });
  const ticket = (headers: Record<string, string>, path = "/events/tickets") =>
    server.send({ method: "POST", path, headers: { "content-type": "application/json", ...headers } });
  const made = await ticket(signedIn);
  expect([made.status, made.json, made.headers["cache-control"]]).toEqual([
    201,
    { ticket: "t", expiresAt: "later" },
    "no-store",
  ]);
  expect(calls).toEqual([
    ["bearer", "Bearer good"],
    ["issue", true],
  ]);
  expect(refusal(await ticket({}))).toEqual([401, "UNAUTHENTICATED", undefined, noToken]);
  expect(calls.filter(([name]) => name === "issue")).toHaveLength(1);
});

/** Sends a request for a stream, which its client gives up as soon as the service waits for a step of it. */
async function leaveAt(step: "begin" | "open") {
  const { live, calls } = testLive();
  const [reached, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const inner = live[step].bind(live) as (...given: unknown[]) => Promise<unknown>;
  Object.assign(live, {
    async [step](...given: unknown[]) {
      reached.resolve();
      await left.promise;
      return inner(...given);
    },
  });
  await using server = await startServer({ live });
  const leaving = get({
    host: "127.0.0.1",
    port: server.port,
    path: "/events/stream?organizationId=o",
    headers: signedIn,
    rejectUnauthorized: false,
  }).on("error", () => {});
  await reached.promise;
  leaving.destroy();
  await until(() => server.log.some(({ event }) => event === "http.request"));
  left.resolve();
  await until(() => calls.some(([name]) => name === (step === "open" ? "closed" : "release")));
  return calls.map(([name]) => name);
}

test("a reader who leaves before the stream begins keeps no slot, and no stream is opened", async () => {
  expect(await leaveAt("begin")).toEqual(["bearer", "begin", "take", "release"]);
});

test("a reader who leaves while the stream is opened closes it", async () => {
  const names = await leaveAt("open");
  expect(names.toSorted()).toEqual(["bearer", "begin", "closed", "open", "release", "take"]);
});

test("a stream is no longer counted among the requests, and is logged with its viewer and its error", async () => {
  const { live, opened } = testLive();
  await using server = await startServer({ live, languageOfUser: async () => "de" });
  const answering = server.send({
    method: "GET",
    path: "/events/stream?organizationId=o",
    headers: signedIn,
  });
  const stream = await opened;
  await until(() => requests.numbers.held === 0);
  stream.end(new CodedError("INTERNAL", internalMessage));
  const { text } = await answering;
  expect(JSON.parse(/event: end\ndata: (.*)\n/.exec(text)![1]!)).toMatchObject({
    message: inGerman,
    code: "INTERNAL",
    key: "somethingWentWrongOnOurSide",
  });
  const line = await until(
    () => server.log.find(({ event }) => event === "http.request"),
    (found) => found,
  );
  expect(line).toMatchObject({ userId: "u1", errorCodes: ["INTERNAL"] });
});
