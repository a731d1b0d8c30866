/**
 * The payment processor: the production client over HTTP against the sandbox, the sandbox's implementation of the
 * rules of the real API, and failures of the processor.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import pino from "pino";
import type { Pool } from "pg";
import {
  ProcessorFailure,
  ProcessorRefusal,
  type PaymentFacts,
  type PaymentProcessor,
  type RefundFacts,
} from "../../src/providers/payments/index.ts";
import { fromMinor, toMinor } from "../../src/providers/payments/minorUnits.ts";
import { startSandbox, type Sandbox } from "../../src/providers/payments/sandbox/index.ts";
import { createStripeProcessor } from "../../src/providers/payments/stripe.ts";
import { createTestDatabase, poolOf, type TestDatabase } from "../harness/database.ts";
import { until } from "../harness/until.ts";

const log = pino({ level: "silent" });
const webhookSecret = "whsec_of_the_tests";
const addresses = { returnUrl: "https://plat.example/paid", serviceUrl: "https://plat.example" };

let database: TestDatabase;
let owner: Pool;
let sandbox: Sandbox;
let processor: PaymentProcessor;
let customerId: string;
let n = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  owner = poolOf(database.ownerUrl, 2);
  owner.on("error", () => {});
  sandbox = await startSandbox({ connectionString: database.workerUrl, log });
  processor = createStripeProcessor({
    secretKey: sandbox.secretKey,
    api: sandbox.api,
    webhookSecret,
    ...addresses,
  });
  customerId = await processor.createCustomer({ userId: "u1", email: "ada@example.com", name: "Ada" });
});
afterAll(async () => {
  await sandbox?.stop();
  await owner?.end();
  await database?.drop();
});

const cardOf = (token: string) => processor.addCard({ customerId, token, holderName: "Ada Lang", key: null });
const facts = (more: Partial<PaymentFacts> = {}): PaymentFacts => ({
  id: `00000000-0000-7000-8000-${String((n += 1)).padStart(12, "0")}`,
  processorId: null,
  status: "REQUIRES_CONFIRMATION",
  open: true,
  confirm: true,
  amount: "100.00",
  currency: "CAD",
  description: null,
  customerId,
  cardId: null,
  accountId: null,
  metadata: {},
  ...more,
});
async function pay(token: string, more: Partial<PaymentFacts> = {}) {
  const payment = facts({ cardId: (await cardOf(token)).id, ...more });
  const made = await processor.createPayment(payment);
  return { made, payment, state: await processor.confirmPayment({ ...payment, processorId: made.id }) };
}
const refund = (charge: string, amount: string, id = `refund ${(n += 1)}`): RefundFacts => ({
  id,
  chargeId: "ours",
  processorId: null,
  processorChargeId: charge,
  amount,
  currency: "CAD",
  reason: "OTHER",
  open: true,
  toAccount: false,
});
async function api(
  method: string,
  path: string,
  params: Record<string, string> = {},
  headers: Record<string, string> = {},
) {
  const response = await fetch(`${sandbox.api}${path}`, {
    method,
    headers: { authorization: `Bearer ${sandbox.secretKey}`, ...headers },
    ...(method === "GET" ? {} : { body: new URLSearchParams(params) }),
  });
  return {
    status: response.status,
    replayed: response.headers.get("idempotent-replayed"),
    body: (await response.json()) as any,
  };
}

test.each([
  ["12.50", "CAD", 1250],
  ["0.07", "USD", 7],
  ["1200", "JPY", 1200],
  ["1.230", "KWD", 1230],
  ["1200", "HUF", 120_000],
  ["8.5", "EUR", 850],
  ["999999999999.99", "CAD", 99_999_999_999_999],
])("%s %s are %d of the smallest unit", (amount, currency, minor) => {
  expect(toMinor(amount, currency)).toBe(minor);
  expect(Number(fromMinor(minor, currency))).toBe(Number(amount));
  expect(() => toMinor("1.0001", currency)).toThrow(RangeError);
});

describe("cards", () => {
  test.each([
    ["tok_visa", "VISA", "4242", "CREDIT"],
    ["tok_visa_debit", "VISA", "5556", "DEBIT"],
    ["pm_card_mastercard", "MASTERCARD", "4444", "CREDIT"],
    ["tok_mastercard_prepaid", "MASTERCARD", "5100", "PREPAID"],
    ["tok_amex", "AMEX", "8431", "CREDIT"],
    ["tok_unionpay", "UNIONPAY", "0005", "CREDIT"],
  ])("%s", async (token, brand, last4, funding) => {
    const card = await cardOf(token);
    expect(card).toMatchObject({ brand, last4, funding, country: "US", expMonth: 12 });
    expect((await cardOf(token)).fingerprint).toBe(card.fingerprint);
  });

  test.each([
    ["tok_chargeDeclined", "card_declined"],
    ["pm_card_visa_chargeDeclinedInsufficientFunds", "insufficient_funds"],
    ["tok_chargeDeclinedExpiredCard", "expired_card"],
    ["tok_chargeDeclinedIncorrectCvc", "incorrect_cvc"],
    ["tok_chargeDeclinedProcessingError", "processing_error"],
    ["tok_nobody", "resource_missing"],
    ["pm_nobody", "resource_missing"],
  ])("%s is refused: %s", async (token, code) => {
    const error = await cardOf(token).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ProcessorRefusal);
    expect(error).toMatchObject({ code });
  });

  test("the sandbox refuses card numbers too", async () => {
    const answer = await api("POST", "/v1/payment_methods", {
      type: "card",
      "card[number]": "4242424242424242",
    });
    expect(answer.status).toBe(402);
    expect(JSON.stringify(answer.body)).not.toContain("4242");
    const { rows } = await owner.query(
      "select 1 from app_private.sandbox_objects where data::text like '%42424242%'",
    );
    expect(rows).toEqual([]);
  });

  test("a removed card cannot be charged; removal is idempotent", async () => {
    const card = await cardOf("tok_visa");
    await processor.removeCard(card.id);
    await processor.removeCard(card.id);
    const payment = facts({ cardId: card.id });
    const made = await processor.createPayment(payment);
    await expect(processor.confirmPayment({ ...payment, processorId: made.id })).rejects.toThrow(
      ProcessorRefusal,
    );
  });
});

describe("payments", () => {
  test("are created unconfirmed, and charged when they are confirmed", async () => {
    const { made, state } = await pay("tok_visa");
    expect(made).toMatchObject({
      id: expect.stringMatching(/^pi_/),
      status: "REQUIRES_CONFIRMATION",
      clientSecret: expect.stringMatching(/^pi_\w+_secret_\w+$/),
      charge: null,
    });
    expect(state).toMatchObject({
      status: "SUCCEEDED",
      charge: {
        id: expect.stringMatching(/^ch_/),
        status: "SUCCEEDED",
        fee: "3.20",
        net: "96.80",
        last4: "4242",
        disputeStatus: null,
        refunds: [],
      },
    });
    expect(await processor.readPayment(made.id)).toEqual(state);
    expect(await processor.cancelPayment(made.id)).toEqual(state);
  });

  test("refused by the bank, they have the reason and wait for another card", async () => {
    const { state } = await pay("tok_chargeCustomerFail");
    expect(state).toMatchObject({
      status: "REQUIRES_PAYMENT_METHOD",
      failure: { code: "card_declined", message: "Your card was declined." },
      charge: { status: "FAILED", failureCode: "card_declined", capturedAt: null },
    });
  });

  test("repeated under their key, they are the same; with other parameters, refused", async () => {
    const { payment, made, state } = await pay("tok_visa");
    expect((await processor.createPayment(payment)).id).toBe(made.id);
    const again = await Promise.all(
      [1, 2, 3].map(() => processor.confirmPayment({ ...payment, processorId: made.id })),
    );
    expect(new Set(again.map(({ charge }) => charge!.id))).toEqual(new Set([state.charge!.id]));
    const error = await processor
      .createPayment({ ...payment, amount: "101.00" })
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ProcessorFailure);
    expect(error).toMatchObject({ retryable: false });
  });

  test.each([
    ["too much", { amount: "1000000.00" }, "amount_too_large"],
    ["an unknown card", { cardId: "pm_nobody" }, "resource_missing"],
    ["an unknown account", { accountId: "acct_nobody" }, "resource_missing"],
  ])("refused: %s", async (_title, more, code) => {
    await expect(processor.createPayment(facts(more))).rejects.toMatchObject({
      name: "ProcessorRefusal",
      code,
    });
  });

  test("survive a restart", async () => {
    const { made, state } = await pay("tok_visa");
    const other = await startSandbox({ connectionString: database.workerUrl, log });
    try {
      const client = createStripeProcessor({ secretKey: other.secretKey, api: other.api, ...addresses });
      expect(await client.readPayment(made.id)).toEqual(state);
    } finally {
      await other.stop();
    }
  });
});

describe("refunds", () => {
  test("can be partial and repeated, found by our id; never exceed the charge, also fifty concurrently", async () => {
    const { state } = await pay("tok_visa");
    const { id } = state.charge!;
    const first = refund(id, "40.00");
    const made = await processor.refund(first);
    expect(made).toMatchObject({ status: "SUCCEEDED", amount: "40.00", ours: first.id });
    expect(await processor.refund(first)).toEqual(made);
    expect(await processor.refund({ ...first, processorId: made.id })).toEqual(made);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 50 }, () => processor.refund(refund(id, "7.00"))),
    );
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(8);
    for (const outcome of outcomes.filter((o) => o.status === "rejected"))
      expect(outcome.reason).toBeInstanceOf(ProcessorRefusal);
    const { charge } = await processor.readPayment(state.id);
    expect(charge!.refunds.reduce((sum, { amount }) => sum + Number(amount), 0)).toBe(96);
  });

  test("complete by themselves while pending; disputes withhold the money", async () => {
    const { state } = await pay("tok_pendingRefund");
    const pending = await processor.refund(refund(state.charge!.id, "1.00"));
    expect(pending.status).toBe("PENDING");
    const { state: disputed } = await pay("tok_createDispute");
    const now = await processor.readPayment(disputed.id);
    expect(now.charge).toMatchObject({ disputeStatus: "OPEN", disputedAt: expect.any(String) });
    await expect(processor.refund(refund(disputed.charge!.id, "1.00"))).rejects.toMatchObject({
      code: "charge_disputed",
    });
    await processor.acceptDispute(disputed.charge!.id);
    await processor.acceptDispute(disputed.charge!.id);
    expect((await processor.readPayment(disputed.id)).charge).toMatchObject({ disputeStatus: "LOST" });
    await owner.query(`update app_private.sandbox_objects set data = data || '{"due": 0}' where id = $1`, [
      pending.id,
    ]);
    void sandbox.kick();
    await until(
      () => processor.readPayment(state.id),
      ({ charge }) => charge!.refunds[0]!.status === "SUCCEEDED",
    );
  });
});

test("an account accepts payments when its representatives are verified", async () => {
  const person = {
    id: "r1",
    organizationId: "o1",
    accountId: null,
    personId: null,
    kind: "AUTHORIZED_REPRESENTATIVE",
    firstName: "Rita",
    lastName: "Rep",
    email: "rita@example.com",
    phone: null,
    dob: "1980-05-17",
    title: "Director",
    ownershipPercent: 30,
    address: { thoroughfare: "address_no_match", locality: "Toronto", postal_code: "M5J 2N8", country: "CA" },
    version: 1,
    organization: {
      name: "Harbour",
      slug: "harbour",
      email: null,
      phone: null,
      url: null,
      country: "CA",
      address: null,
    },
  };
  const account = await processor.createAccount(person, "203.0.113.7");
  expect(account).toMatchObject({
    status: "ONBOARDING",
    requirements: expect.arrayContaining(["representative.first_name"]),
  });
  const submitted = await processor.submitPerson(account.id, person);
  expect(submitted).toMatchObject({ status: "REQUIREMENTS_DUE", requirements: ["verification.document"] });
  await expect(processor.submitPerson(account.id, { ...person, id: "r2" })).rejects.toThrow(ProcessorRefusal);
  const moved = {
    ...person,
    personId: submitted.id,
    version: 2,
    address: { ...person.address, thoroughfare: "1 Quay Street" },
  };
  expect(await processor.submitPerson(account.id, moved)).toMatchObject({
    id: submitted.id,
    status: "VERIFIED",
  });
  expect(await processor.readAccount(account.id)).toMatchObject({
    status: "ENABLED",
    requirements: [],
    people: [{ id: submitted.id, status: "VERIFIED" }],
  });
  await processor.removePerson(account.id, submitted.id);
  await processor.removePerson(account.id, submitted.id);
  expect((await processor.readAccount(account.id)).status).toBe("ONBOARDING");
  await processor.closeAccount(account.id);
  await processor.closeAccount(account.id);
  await expect(processor.readAccount(account.id)).rejects.toThrow(ProcessorRefusal);
});

describe("the API of the sandbox", () => {
  test("one key is one request: a repeated one has the same response, a concurrent one a conflict or that response, another body is an error", async () => {
    const ask = (amount: string, key: string) =>
      api("POST", "/v1/payment_intents", { amount, currency: "cad" }, { "idempotency-key": key });
    const first = await ask("500", "k1");
    expect(first).toMatchObject({
      status: 200,
      replayed: null,
      body: { object: "payment_intent", amount: 500 },
    });
    expect(await ask("500", "k1")).toEqual({ ...first, replayed: "true" });
    expect(await ask("501", "k1")).toMatchObject({
      status: 400,
      body: { error: { type: "idempotency_error" } },
    });
    const many = await Promise.all(Array.from({ length: 10 }, () => ask("700", "k2")));
    const made = many.filter(({ status }) => status === 200);
    expect(new Set(made.map(({ body }) => body.id)).size).toBe(1);
    for (const { body } of many.filter(({ status }) => status !== 200))
      expect(body.error).toMatchObject({ type: "idempotency_error", code: "idempotency_key_in_use" });
    // A request that was refused before it had an effect is not stored.
    expect((await ask("-1", "k3")).status).toBe(400);
    expect((await ask("500", "k3")).status).toBe(200);
  });

  test.each([
    ["no key", "GET", "/v1/payment_intents/pi_1", { authorization: "" }, 401],
    ["another key", "GET", "/v1/payment_intents/pi_1", { authorization: "Bearer sk_test_other" }, 401],
    [
      "a client at what is the service's",
      "POST",
      "/v1/refunds",
      { authorization: "Bearer pk_test_client" },
      401,
    ],
    ["an unknown object", "GET", "/v1/payment_intents/pi_1", {}, 404],
    ["an unknown address", "GET", "/v1/unicorns", {}, 404],
  ])("%s", async (_title, method, path, headers, status) => {
    const answer = await api(method, path, {}, headers as Record<string, string>);
    expect(answer).toMatchObject({
      status,
      body: { error: { type: "invalid_request_error", message: expect.any(String) } },
    });
  });
});

describe("events", () => {
  test("are signed, sent until they are accepted, and listed", async () => {
    const since = Date.now() / 1000 - 1;
    const received: { body: Buffer; signature: string }[] = [];
    let fails = 1;
    const listener: RequestListener = (request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part) => parts.push(part));
      request.on("end", () => {
        response.writeHead(fails-- > 0 ? 500 : 200).end();
        if (fails < 0)
          received.push({
            body: Buffer.concat(parts),
            signature: String(request.headers["stripe-signature"]),
          });
      });
    };
    const receiver = await listening(listener);
    await owner.query("delete from app_private.sandbox_objects where kind = 'event'");
    sandbox.deliverTo({ url: receiver.url, secret: webhookSecret });
    const { state } = await pay("tok_visa");
    const waiting = async () =>
      (await owner.query("select from app_private.sandbox_objects where kind = 'event' and data ? 'due'"))
        .rowCount;
    await until(
      async () => {
        await owner.query(
          `update app_private.sandbox_objects set data = data || '{"due": 0}' where kind = 'event' and data ? 'due' and (data ->> 'tries')::int > 0`,
        );
        void sandbox.kick();
        return waiting();
      },
      (remaining) => remaining === 0,
    );
    const events = received.map(({ body, signature }) => processor.readEvent(body, signature)!);
    expect(events.map(({ type }) => type).sort()).toEqual([
      "charge.succeeded",
      "payment_intent.created",
      "payment_intent.succeeded",
    ]);
    expect(new Set(events.map(({ objectId }) => objectId))).toEqual(new Set([state.id]));
    const [{ body, signature }] = received as [(typeof received)[0]];
    expect(processor.readEvent(Buffer.from(`${body} `), signature)).toBeUndefined();
    expect(processor.readEvent(body, undefined)).toBeUndefined();
    expect(processor.readEvent(body, signature.replace(/v1=..../, "v1=0000"))).toBeUndefined();
    const listed = await processor.eventsSince(since);
    expect(listed.map(({ type }) => type)).toEqual(["charge.succeeded", "payment_intent.succeeded"]);
    await receiver.close();
  });

  test("are listed page by page, newest first, and read to the end", async () => {
    await owner.query("delete from app_private.sandbox_objects where kind = 'event'");
    await owner.query(
      `insert into app_private.sandbox_objects (id, kind, data)
       select 'evt_' || n, 'event', jsonb_build_object('id', 'evt_' || n, 'object', 'event', 'created', $1::bigint + n / 10,
         'type', case when n % 2 = 0 then 'charge.updated' else 'payout.paid' end, 'data', '{"object": {"object": "charge"}}'::jsonb)
       from generate_series(1, 505) n order by n`,
      [Math.floor(Date.now() / 1000) - 100],
    );
    const listed = await processor.eventsSince(Date.now() / 1000 - 1000);
    expect(listed.map(({ id }) => id)).toEqual(
      Array.from({ length: 252 }, (_, index) => `evt_${(index + 1) * 2}`),
    );
    const ids = async (query: string) => {
      const { body } = await api("GET", `/v1/events?${query}`);
      return [body.data.map(({ id }: { id: string }) => id), body.has_more];
    };
    expect(await ids("limit=2")).toEqual([["evt_505", "evt_504"], true]);
    expect((await ids(""))[0]).toHaveLength(10);
    expect(await ids("limit=2&starting_after=evt_3")).toEqual([["evt_2", "evt_1"], false]);
    expect(await ids("limit=2&ending_before=evt_3")).toEqual([["evt_5", "evt_4"], true]);
    expect(await ids("limit=9&ending_before=evt_504")).toEqual([["evt_505"], false]);
    for (const [query, status, param] of [
      ["limit=101", 400, "limit"],
      ["starting_after=evt_none", 404, "starting_after"],
      ["starting_after=evt_1&ending_before=evt_2", 400, "ending_before"],
    ])
      expect(await api("GET", `/v1/events?${query}`)).toMatchObject({ status, body: { error: { param } } });
  });
});

describe("a failing processor", () => {
  const failing = async (listener: RequestListener) => {
    const server = await listening(listener);
    const client = createStripeProcessor({
      secretKey: "sk_test_x",
      api: server.url,
      timeoutMs: 300,
      ...addresses,
    });
    const error = await client.readPayment("pi_1").catch((reason: unknown) => reason);
    await server.close();
    expect(error).toBeInstanceOf(ProcessorFailure);
    return error as ProcessorFailure;
  };
  const answer =
    (status: number, body: string): RequestListener =>
    (_request, response) =>
      void response
        .writeHead(status, { "stripe-should-retry": "false", "content-type": "application/json" })
        .end(body);
  const error = (type: string) => JSON.stringify({ error: { type, message: "No." } });

  test.each([
    ["answers 500", answer(500, error("api_error")), true],
    ["answers 503 without JSON", answer(503, "<html>"), true],
    ["has too many requests", answer(429, error("invalid_request_error")), true],
    ["does not know the key", answer(401, error("invalid_request_error")), false],
    ["does not respond", () => {}, true],
    ["disconnects", (request: any) => void request.socket.destroy(), true],
  ] as [string, RequestListener, boolean][])("%s", async (_title, listener, retryable) => {
    expect((await failing(listener)).retryable).toBe(retryable);
  });

  test("is unreachable", async () => {
    const client = createStripeProcessor({ secretKey: "sk_test_x", api: "http://127.0.0.1:9", ...addresses });
    await expect(client.readPayment("pi_1")).rejects.toMatchObject({
      name: "ProcessorFailure",
      retryable: true,
    });
  });
});

async function listening(listener: RequestListener): Promise<{ url: string; close(): Promise<void> }> {
  const server: Server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
