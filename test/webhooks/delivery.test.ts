import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import pino from "pino";
import { testCompute } from "../harness/compute.ts";
import { Webhook } from "standardwebhooks";
import { createSeal, type SealOptions } from "../../src/secrets/seal.ts";
import { startDispatcher, type Dispatcher } from "../../src/webhooks/dispatcher.ts";
import { secretKeys } from "../harness/api.ts";
import { startWorld, type World } from "../harness/world.ts";
import { createOutbox, runJobs } from "../tasks/worker.ts";
import { startReceiver, status, type Receiver } from "./receiver.ts";
import { until } from "../harness/until.ts";

// Webhooks as their receivers see them: a real HTTPS server, the real dispatcher, the API.

const compute = testCompute();
let world: World;
let receiver: Receiver;
let dispatchers: Dispatcher[];

beforeAll(async () => {
  world = await startWorld(undefined, { loopbackWebhooks: true });
});
afterAll(() => world.stop());
beforeEach(async () => {
  receiver = await startReceiver();
  dispatchers = [await dispatch()];
});
afterEach(async () => {
  await world.owner.query("update app_public.webhooks set status = 'DISABLED' where status <> 'DISABLED'");
  await receiver.close();
  await Promise.all(dispatchers.map((dispatcher) => dispatcher.stop()));
});

/** Longer than any test: a dispatcher with this poll interval only sends when it is notified. */
const seldom = 3_600_000;

const dispatch = (timeoutMs = 10_000, sealLog?: SealOptions["log"], lookEveryMs?: number) =>
  startDispatcher({
    connectionString: world.database.workerUrl,
    seal: createSeal(secretKeys, sealLog && { log: sealLog }),
    loopback: true,
    compute,
    log: pino({ level: "silent" }),
    timeoutMs,
    ...(lookEveryMs && { lookEveryMs }),
  });

interface Made {
  id: string;
  secret: string;
}

async function create(url = receiver.url, events = ["lead.*"]): Promise<Made> {
  const data = await world.owen.get(
    "mutation ($input: CreateWebhookInput!) { createWebhook(input: $input) { id secret } }",
    { input: { organizationId: world.harbour.id, url, events } },
  );
  return data.createWebhook;
}

let leads = 0;

async function lead(name: string): Promise<string> {
  const data = await world.owen.get(
    "mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }",
    { input: { projectId: world.project.id, name, email: `${name.toLowerCase()}.${++leads}@example.com` } },
  );
  return data.createLead.id;
}

const fields = `id status failureCount disabledReason lastDeliveryAt
  deliveries { attempt status responseStatus responseBody durationMs nextAttemptAt event { id name } }`;

async function read({ id }: Made): Promise<any> {
  return (await world.owen.get(`query ($id: ID!) { webhook(id: $id) { ${fields} } }`, { id })).webhook;
}

/** Reads the webhook until the condition is satisfied. */
const reaches = (made: Made, isSo: (webhook: any) => boolean): Promise<any> => until(() => read(made), isSo);

const settled = (webhook: any) =>
  webhook.deliveries.length > 0 && webhook.deliveries.every((d: any) => d.status !== "PENDING");

/** Makes the next attempt due. */
const nextAttempt = (made: Made) =>
  world.owner.query(
    "update app_private.webhook_queue set due_at = now() where webhook_id = $1 and not leased",
    [made.id],
  );

test("an event arrives with its record and a signature that the standard library verifies", async () => {
  const made = await create();
  expect(made.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  const id = await lead("Vera");
  const message = await receiver.next();
  expect(new Webhook(made.secret).verify(message.text, message.headers)).toEqual(message.event);
  expect(message.event).toMatchObject({
    id: message.id,
    type: "lead.created",
    organizationId: world.harbour.id,
    projectId: world.project.id,
    subjectType: "lead",
    subjectId: id,
    actorId: world.owen.id,
    actorType: "USER",
    channel: "API",
    changes: null,
    data: { id, name: "Vera" },
  });
  const webhook = await reaches(made, settled);
  expect(webhook).toMatchObject({
    status: "ENABLED",
    failureCount: 0,
    lastDeliveryAt: expect.any(String),
    deliveries: [
      {
        attempt: 1,
        status: "SUCCEEDED",
        responseStatus: 204,
        nextAttemptAt: null,
        event: { id: message.id, name: "lead.created" },
      },
    ],
  });
});

test("only selected, committed events later than the webhook arrive", async () => {
  await lead("Early");
  const all = await startReceiver();
  const some = await create(receiver.url, ["lead.updated", "unit.*"]);
  await create(all.url, ["*"]);
  const client = await world.owner.connect();
  await client.query("begin");
  await client.query("insert into app_public.leads (project_id, name) values ($1, 'Ghost')", [
    world.project.id,
  ]);
  await client.query("rollback");
  client.release();
  const id = await lead("Later");
  await world.owen.get('mutation ($id: ID!) { updateLead(input: { id: $id, name: "Latest" }) { id } }', {
    id,
  });
  const update = await receiver.next();
  expect(update.event).toMatchObject({
    type: "lead.updated",
    subjectId: id,
    changes: { name: ["Later", "Latest"] },
  });
  await until(() => all.messages.some(({ id: known }) => known === update.id));
  await reaches(some, settled);
  expect(receiver.messages).toHaveLength(1);
  const names = all.messages
    .filter(({ event }) => event.subjectType === "lead")
    .map(({ event }) => event.data.name);
  expect(new Set(names)).toEqual(new Set(["Later", "Latest"]));
  await all.close();
});

test.each([
  ["500", 500, {}, [4, 6]],
  ["a redirect, which is not followed", 302, { location: "https://localhost:1/" }, [4, 6]],
  ["Retry-After in seconds", 503, { "retry-after": "120" }, [119, 121]],
  [
    "Retry-After as a date",
    429,
    { "retry-after": new Date(Date.now() + 3_600_000).toUTCString() },
    [3300, 3601],
  ],
] as const)("%s is tried again", async (_name, code, headers, [least, most]) => {
  const made = await create();
  receiver.answers(status(code, headers));
  await lead("Rita");
  const first = await receiver.next();
  const { deliveries } = await reaches(made, settled);
  expect(deliveries).toMatchObject([
    { attempt: 1, status: "RETRYING", responseStatus: code, responseBody: `answer ${code}` },
  ]);
  const pause = (Date.parse(deliveries[0].nextAttemptAt) - Date.now()) / 1000;
  expect(pause).toBeGreaterThan(least - 2);
  expect(pause).toBeLessThan(most);
  receiver.answers(status(200));
  await nextAttempt(made);
  const second = await receiver.next();
  expect(second.id).toBe(first.id);
  expect(second.text).toBe(first.text);
  expect(Number(second.headers["webhook-timestamp"])).toBeGreaterThanOrEqual(
    Number(first.headers["webhook-timestamp"]),
  );
  new Webhook(made.secret).verify(second.text, second.headers);
  const after = await reaches(made, (w) => w.deliveries[0].status === "SUCCEEDED");
  expect(after).toMatchObject({ failureCount: 0, deliveries: [{ attempt: 2 }] });
});

test("a request to a receiver that disconnects, hangs or never ends is aborted", async () => {
  await dispatchers.pop()!.stop();
  dispatchers.push(await dispatch(500));
  const made = await create();
  receiver.answers((_message, _response, request) => request.socket.destroy());
  await lead("Reset");
  expect((await reaches(made, settled)).deliveries).toMatchObject([
    { status: "RETRYING", responseStatus: null, responseBody: expect.stringMatching(/^There was no answer/) },
  ]);
  receiver.answers(() => {});
  await nextAttempt(made);
  expect(
    (await reaches(made, (w) => w.deliveries[0].responseBody?.includes("within"))).deliveries,
  ).toMatchObject([
    { attempt: 2, responseStatus: null, responseBody: "There was no complete answer within 0.5 seconds." },
  ]);
  let written = 0;
  receiver.answers((_message, response) => {
    response.writeHead(200);
    const more = () => {
      for (let room = true; room && !response.destroyed; written += 65536)
        room = response.write("x".repeat(65536));
    };
    response.on("drain", more);
    more();
  });
  await nextAttempt(made);
  const { deliveries } = await reaches(
    made,
    (w) => w.deliveries[0].attempt === 3 && w.deliveries[0].responseStatus,
  );
  expect(deliveries).toMatchObject([{ status: "SUCCEEDED", responseStatus: 200 }]);
  expect(deliveries[0].responseBody).toHaveLength(2000);
  expect(written).toBeLessThan(100_000_000);
});

test("the pauses grow to a day; after the last retry the delivery has failed", async () => {
  const seconds = [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400];
  const { rows } = await world.owner.query(
    "select extract(epoch from app_private.retry_pause(n))::float as pause from generate_series(1, 10) n",
  );
  const pauses = rows.map(({ pause }) => pause);
  expect(pauses.pop()).toBeNull();
  pauses.forEach((pause, n) => {
    expect(pause).toBeGreaterThanOrEqual(seconds[n]! * 0.8);
    expect(pause).toBeLessThanOrEqual(seconds[n]! * 1.2);
  });
  const made = await create();
  receiver.answers(status(500));
  await lead("Last");
  await receiver.next();
  await reaches(made, settled);
  await world.owner.query("update app_public.webhook_deliveries set attempt = 9 where webhook_id = $1", [
    made.id,
  ]);
  await nextAttempt(made);
  expect((await reaches(made, (w) => w.deliveries[0].status === "FAILED")).deliveries).toMatchObject([
    { attempt: 10, nextAttemptAt: null },
  ]);
});

test("410 disables the webhook and discards waiting deliveries; the owners get a mail", async () => {
  const outbox = await createOutbox();
  // Sends the remaining mails about webhooks of other tests.
  await runJobs(world.database.ownerUrl, outbox.provider);
  await outbox.take();
  const made = await create();
  receiver.answers(status(500));
  await lead("Waits");
  await reaches(made, settled);
  receiver.answers(status(410));
  await lead("Gone");
  const webhook = await reaches(made, (w) => w.status === "DISABLED");
  expect(webhook.disabledReason).toMatch(/410/);
  expect(webhook.deliveries.map((d: any) => d.status).sort()).toEqual(["DISCARDED", "FAILED"]);
  await runJobs(world.database.ownerUrl, outbox.provider);
  const mails = await outbox.take();
  expect(mails.filter(({ subject }) => subject?.includes("webhook"))).toMatchObject([
    { to: [{ address: world.owen.email }], text: expect.stringContaining(receiver.url) },
  ]);
  await outbox.remove();
  // Enabled again, it begins with new events; the others are sent on request, under the same ids.
  receiver.answers(status(200));
  const known = receiver.messages.length;
  await lead("Unseen");
  await world.owen.get("mutation ($id: ID!) { updateWebhook(input: { id: $id, status: ENABLED }) { id } }", {
    id: made.id,
  });
  await lead("Seen");
  const seen = await reaches(made, (w) => w.deliveries.some((d: any) => d.status === "SUCCEEDED"));
  expect(seen).toMatchObject({ status: "ENABLED", disabledReason: null, failureCount: 0 });
  expect(receiver.messages.slice(known).map(({ event }) => event.data.name)).toEqual(["Seen"]);
});

test("three consecutive failures make it FAILING, a success ENABLED; five days of failures DISABLED", async () => {
  const made = await create(receiver.url, ["*"]);
  receiver.answers(status(500));
  for (const name of ["Fia", "Fred", "Fay"]) await lead(name);
  expect(await reaches(made, (w) => w.failureCount >= 3)).toMatchObject({ status: "FAILING" });
  receiver.answers(status(200));
  await nextAttempt(made);
  await reaches(made, (w) => w.status === "ENABLED");
  receiver.answers(status(500));
  await lead("Fox");
  await reaches(made, (w) => w.failureCount > 0);
  await world.owner.query(
    "update app_private.webhook_health set failing_since = failing_since - interval '5 days' where webhook_id = $1",
    [made.id],
  );
  await nextAttempt(made);
  expect(await reaches(made, (w) => w.status === "DISABLED")).toMatchObject({
    disabledReason: "Nothing was taken for five days.",
  });
});

test("a paused webhook gets its events later, a deleted one never", async () => {
  const made = await create();
  const set = (to: string) =>
    world.owen.get(`mutation ($id: ID!) { updateWebhook(input: { id: $id, status: ${to} }) { status } }`, {
      id: made.id,
    });
  await set("PAUSED");
  await lead("Patient");
  const { sendTestWebhook: sent } = await world.owen.get(
    "mutation ($id: ID!) { sendTestWebhook(input: { id: $id }) { id status attempt event { id } } }",
    { id: made.id },
  );
  expect(sent).toMatchObject({ status: "PENDING", attempt: 0, event: null });
  // A test event is sent nevertheless.
  const message = await receiver.next();
  expect(message).toMatchObject({ id: sent.id, event: { type: "webhook.test" } });
  new Webhook(made.secret).verify(message.text, message.headers);
  expect(receiver.messages).toHaveLength(1);
  await set("ENABLED");
  expect((await receiver.next()).event.data.name).toBe("Patient");
  await world.owen.get("mutation ($id: ID!) { deleteWebhook(input: { id: $id }) { deleted } }", {
    id: made.id,
  });
  const other = await create();
  await lead("Deleted");
  await receiver.next();
  await reaches(other, settled);
  expect(receiver.messages).toHaveLength(3);
});

test("a failed test is not repeated and does not count", async () => {
  const made = await create();
  receiver.answers(status(500));
  await world.owen.get("mutation ($id: ID!) { sendTestWebhook(input: { id: $id }) { id } }", { id: made.id });
  expect(await reaches(made, settled)).toMatchObject({
    failureCount: 0,
    status: "ENABLED",
    deliveries: [{ status: "FAILED", attempt: 1, responseStatus: 500 }],
  });
});

test("during the grace period both secrets sign, afterwards only the new one", async () => {
  const made = await create();
  const { rotateWebhookSecret: rotated } = await world.owen.get(
    `mutation ($id: ID!) { rotateWebhookSecret(input: { id: $id, graceHours: 2 })
      { secret secretPrefix previousSecretExpiresAt } }`,
    { id: made.id },
  );
  expect(rotated.secret).not.toBe(made.secret);
  expect(rotated.secret.startsWith(rotated.secretPrefix)).toBe(true);
  await lead("Both");
  const both = await receiver.next();
  for (const secret of [made.secret, rotated.secret]) new Webhook(secret).verify(both.text, both.headers);
  expect(both.headers["webhook-signature"]!.split(" ")).toHaveLength(2);
  await world.owner.query(
    "update app_private.webhook_secrets set previous_expires_at = now() where webhook_id = $1",
    [made.id],
  );
  await lead("New");
  const after = await receiver.next();
  new Webhook(rotated.secret).verify(after.text, after.headers);
  expect(() => new Webhook(made.secret).verify(after.text, after.headers)).toThrow("No matching signature");
});

test("a delivery outlives its event: it is no longer sent, and has no event", async () => {
  const made = await create();
  receiver.answers(status(500));
  await lead("Olive");
  await receiver.next();
  const { deliveries } = await reaches(made, settled);
  expect(deliveries).toMatchObject([{ status: "RETRYING", event: { name: "lead.created" } }]);
  // As if the partition of the event had been dropped.
  await world.owner.query(
    `begin; set local session_replication_role = 'replica';
     delete from app_public.events where id = (select event_id from app_public.webhook_deliveries where webhook_id = '${made.id}');
     commit`,
  );
  await nextAttempt(made);
  await dispatchers[0]!.stop();
  dispatchers = [await dispatch()];
  const after = await reaches(made, (webhook) => webhook.deliveries[0].status === "DISCARDED");
  expect(after.deliveries).toMatchObject([{ event: null, nextAttemptAt: null }]);
  expect(receiver.messages).toHaveLength(1);
});

test("a range is sent again under the same ids", async () => {
  const made = await create();
  for (const name of ["Una", "Due", "Tre"]) await lead(name);
  const sent = [await receiver.next(), await receiver.next(), await receiver.next()];
  const second = sent.find(({ event }) => event.data.name === "Due")!;
  await world.owen.get("mutation ($input: RedeliverEventsInput!) { redeliverEvents(input: $input) { id } }", {
    input: { id: made.id, fromSequence: second.event.sequence, toSequence: second.event.sequence },
  });
  const again = await receiver.next();
  expect([again.id, again.text]).toEqual([second.id, second.text]);
  const webhook = await reaches(made, (w) => w.deliveries.length === 4 && settled(w));
  expect(webhook.deliveries.filter((d: any) => d.event.id === second.id)).toHaveLength(2);
});

test("a slow receiver does not delay others, however many deliveries wait for it", async () => {
  await dispatchers.pop()!.stop();
  dispatchers.push(await dispatch(600_000));
  const slow = await startReceiver();
  slow.answers(() => {});
  const behind = await create(slow.url);
  await world.owner.query(
    "insert into app_public.leads (project_id, name) select $1, 'Crowd ' || n from generate_series(1, 10000) n",
    [world.project.id],
  );
  await slow.next();
  await create();
  // No request to the slow one ends meanwhile, so waiting for it would never end.
  for (let n = 0; n < 20; n += 1) {
    await lead(`Quick${n}`);
    expect((await receiver.next()).event.data.name).toBe(`Quick${n}`);
  }
  const { rows } = await world.owner.query(
    "select 1 from app_public.webhook_deliveries where webhook_id = $1 and status <> 'PENDING'",
    [behind.id],
  );
  expect(rows).toEqual([]);
  // The maximum number of concurrent requests per receiver.
  expect(slow.messages.length).toBeLessThanOrEqual(4);
  await slow.close();
});

test("an organization with many slow receivers does not delay others", async () => {
  await dispatchers.pop()!.stop();
  dispatchers.push(await dispatch(600_000));
  const slow = await startReceiver();
  slow.answers(() => {});
  for (let n = 0; n < 20; n += 1) await create(slow.url);
  await world.owner.query(
    "insert into app_public.leads (project_id, name) select $1, 'Crowd ' || n from generate_series(1, 10) n",
    [world.project.id],
  );
  // All that it may have at a time, and no request of it ends.
  await until(() => slow.messages.length === 64);
  const stranger = await world.signUp("Ida");
  const get = async (query: string, input: object) => (await stranger.get(query, { input })) as any;
  const { createOrganization: other } = await get(
    "mutation ($input: CreateOrganizationInput!) { createOrganization(input: $input) { id } }",
    { name: "Inlet Homes" },
  );
  const { createProject: project } = await get(
    "mutation ($input: CreateProjectInput!) { createProject(input: $input) { id } }",
    { organizationId: other.id, title: "Inlet", status: "SELLING" },
  );
  await get("mutation ($input: CreateWebhookInput!) { createWebhook(input: $input) { id } }", {
    organizationId: other.id,
    url: receiver.url,
    events: ["lead.*"],
  });
  for (let n = 0; n < 5; n += 1) {
    await get("mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }", {
      projectId: project.id,
      name: `Other${n}`,
    });
    expect((await receiver.next()).event.data.name).toBe(`Other${n}`);
  }
  expect(slow.messages).toHaveLength(64);
  await slow.close();
  // They count towards the webhooks that an organization may have.
  await world.owner.query("update app_public.webhooks set deleted_at = now() where url = $1", [slow.url]);
});

test("a commit notifies the dispatcher, so that nothing waits for a poll", async () => {
  await dispatchers.pop()!.stop();
  dispatchers.push(await dispatch(10_000, undefined, seldom));
  await create();
  for (let n = 0; n < 21; n += 1) {
    await world.owner.query("insert into app_public.leads (project_id, name) values ($1, $2)", [
      world.project.id,
      `Swift${n}`,
    ]);
    expect((await receiver.next()).event.data.name).toBe(`Swift${n}`);
  }
});

test("an event is sent as soon as the previous attempt ends, even if the webhook's cursor is locked", async () => {
  await dispatchers.pop()!.stop();
  dispatchers.push(await dispatch(10_000, undefined, seldom));
  const made = await create();
  await lead("Before");
  expect((await receiver.next()).event.data.name).toBe("Before");
  await reaches(made, settled);
  const holder = await world.owner.connect();
  try {
    await holder.query("begin");
    await holder.query("select from app_private.webhook_progress where webhook_id = $1 for no key update", [
      made.id,
    ]);
    await lead("Meanwhile");
    // The fan-out waits for the lock.
    await until(async () => {
      const { rows } = await world.owner.query(
        "select from pg_stat_activity where application_name = 'plat-webhooks' and datname = current_database() and wait_event_type = 'Lock'",
      );
      return rows.length > 0;
    });
    await holder.query("commit");
  } finally {
    holder.release();
  }
  expect((await receiver.next()).event.data.name).toBe("Meanwhile");
});

test("deliveries of a dead dispatcher are sent by another", async () => {
  await dispatchers.pop()!.stop();
  const made = await create();
  await lead("Orphan");
  // As a process does that dies between claim and response.
  await world.owner.query("select app_private.fan_out_webhooks(100)");
  const { rowCount } = await world.owner.query(
    "select * from app_private.claim_webhook_deliveries(10, '30 seconds', 0)",
  );
  expect(rowCount).toBe(1);
  dispatchers.push(await dispatch(), await dispatch());
  expect((await receiver.next()).event.data.name).toBe("Orphan");
  await reaches(made, (w) => w.deliveries[0].status === "SUCCEEDED");
  expect(receiver.messages).toHaveLength(1);
});

test("connections are reused for the next events; one that the receiver has closed costs no attempt", async () => {
  const made = await create();
  const sockets = new Set<unknown>();
  receiver.answers((_message, response, request) => {
    sockets.add(request.socket);
    response.writeHead(204).end();
  });
  for (let n = 0; n < 12; n += 1) {
    await lead(`Kept${n}`);
    await receiver.next();
  }
  await reaches(made, (w) => w.deliveries.length === 12 && settled(w));
  expect(sockets.size).toBeLessThanOrEqual(4);
  receiver.answers((_message, response, request) => {
    if (sockets.has(request.socket)) request.socket.destroy();
    else response.writeHead(200).end();
  });
  await lead("Stale");
  expect(await receiver.next()).toMatchObject({ id: (await receiver.next()).id });
  const { deliveries } = await reaches(made, (w) => w.deliveries.length === 13 && settled(w));
  expect(deliveries[0]).toMatchObject({ status: "SUCCEEDED", attempt: 1, responseStatus: 200 });
});

test("successes are recorded together, and the body of an event is created once for all its webhooks", async () => {
  await dispatchers.pop()!.stop();
  const [made, held] = [await create(), await create()];
  for (const name of ["Ann", "Ben", "Cai"]) await lead(name);
  await world.owner.query("select app_private.fan_out_webhooks(100)");
  const client = await world.owner.connect();
  const holder = await world.owner.connect();
  const { rows: lines } = await client.query("select app_private.connection_begins(null) as id");
  try {
    await client.query("begin; set local track_functions = 'all'");
    const { rows: claimed } = await client.query(
      "select * from app_private.claim_webhook_deliveries(10, '30 seconds', $1)",
      [lines[0].id],
    );
    expect(claimed).toHaveLength(6);
    expect(new Set(claimed.map(({ body }) => body)).size).toBe(3);
    const { rows: calls } = await client.query(
      "select pg_stat_get_xact_function_calls('app_hidden.event_message(app_public.events, jsonb, jsonb)'::regprocedure)::int as n",
    );
    expect(calls).toEqual([{ n: 3 }]);
    await client.query("commit");
    await holder.query("begin");
    await holder.query("select from app_public.webhooks where id = $1 for no key update", [held.id]);
    const settle = (outdated = 0) =>
      client.query("select app_private.record_webhook_deliveries($1, $2, $3, $4, $5) as left", [
        claimed.map(({ delivery_id }) => delivery_id),
        claimed.map(({ attempt }) => attempt - outdated),
        claimed.map(() => 204),
        claimed.map(() => ""),
        claimed.map(() => 7),
      ]);
    const ofHeld = claimed
      .filter(({ webhook_id }) => webhook_id === held.id)
      .map(({ delivery_id }) => delivery_id);
    // The outcome of an attempt that another worker has taken over is ignored.
    await settle(1);
    expect((await read(made)).deliveries.map((d: any) => d.status)).toEqual(Array(3).fill("PENDING"));
    // A locked delivery is skipped, without blocking the others.
    const { rows: left } = await settle();
    expect(left[0].left.toSorted()).toEqual(ofHeld.toSorted());
    expect(await read(made)).toMatchObject({
      failureCount: 0,
      lastDeliveryAt: expect.any(String),
      deliveries: Array(3).fill({ status: "SUCCEEDED", attempt: 1, responseStatus: 204, durationMs: 7 }),
    });
    expect((await read(held)).deliveries.map((d: any) => d.status)).toEqual(Array(3).fill("PENDING"));
    await holder.query("rollback");
    expect((await settle()).rows).toEqual([{ left: [] }]);
    expect((await read(held)).deliveries.map((d: any) => d.status)).toEqual(Array(3).fill("SUCCEEDED"));
  } finally {
    holder.release(true);
    client.release(true);
  }
});

test("a host name that no longer resolves to a permitted address is refused at the attempt", async () => {
  const made = await create();
  await world.owner.query("update app_public.webhooks set url = 'https://169.254.169.254/' where id = $1", [
    made.id,
  ]);
  await lead("Metadata");
  expect((await reaches(made, settled)).deliveries).toMatchObject([
    {
      status: "RETRYING",
      responseStatus: null,
      responseBody: "There was no answer: This host is not on a public network.",
    },
  ]);
});

test("a missing key is a failure that is retried", async () => {
  await dispatchers.pop()!.stop();
  dispatchers.push(
    await startDispatcher({
      connectionString: world.database.workerUrl,
      seal: createSeal([{ kid: "other", secret: "another key of the tests with 32 characters" }]),
      loopback: true,
      compute,
      log: pino({ level: "silent" }),
    }),
  );
  const made = await create();
  await lead("Sealed");
  expect((await reaches(made, settled)).deliveries).toMatchObject([
    { status: "RETRYING", responseStatus: null, responseBody: "The service cannot open the secret." },
  ]);
  expect(receiver.messages).toEqual([]);
});

test("a secret of another webhook is not used: the webhook is disabled with the reason, until the secret is rotated", async () => {
  const [made, other] = [await create(), await create("https://localhost:1/")];
  const logged: any[] = [];
  await dispatchers.pop()!.stop();
  dispatchers.push(await dispatch(10_000, { error: (facts: object) => logged.push(facts) }));
  await world.owner.query(
    `update app_private.webhook_secrets s set sealed = o.sealed from app_private.webhook_secrets o
     where s.webhook_id = any ($1) and o.webhook_id = any ($1) and o.webhook_id <> s.webhook_id`,
    [[made.id, other.id]],
  );
  await lead("Swapped");
  expect(await reaches(made, (webhook) => webhook.status !== "ENABLED")).toMatchObject({
    status: "DISABLED",
    disabledReason: expect.stringContaining("is that of another webhook: rotate the secret"),
    deliveries: [
      {
        status: "DISCARDED",
        responseStatus: null,
        responseBody: "Its webhook has a secret that is not its own.",
      },
    ],
  });
  expect(logged).toContainEqual({
    event: "secret.misplaced",
    code: "SEALED_VALUE_MISPLACED",
    column: "app_private.webhook_secrets.sealed",
    row: made.id,
  });
  expect(receiver.messages).toEqual([]);
  // After a rotation, it signs with its own secret, and not with the former one.
  const rotated = await world.owen.get(
    `mutation ($rotation: RotateWebhookSecretInput!, $change: UpdateWebhookInput!) {
      rotateWebhookSecret(input: $rotation) { secret } updateWebhook(input: $change) { status } }`,
    { rotation: { id: made.id }, change: { id: made.id, status: "ENABLED" } },
  );
  await lead("Mended");
  const message = await receiver.next();
  expect(new Webhook(rotated.rotateWebhookSecret.secret).verify(message.text, message.headers)).toMatchObject(
    {
      data: { name: "Mended" },
    },
  );
  expect(String(message.headers["webhook-signature"]).split(" ")).toHaveLength(1);
});

test("for an event that is too large, everything except for the record is sent", async () => {
  await create();
  const id = await lead("Large");
  const small = await receiver.next();
  const { rows } = await world.owner.query(
    `select app_private.webhook_body(jsonb_populate_record(e, jsonb_build_object('data', jsonb_build_object('name', repeat('x', 262144)))))::json as body
     from app_public.events e where e.id = $1`,
    [small.id],
  );
  expect(rows[0].body).toMatchObject({ id: small.id, type: "lead.created", subjectId: id, truncated: true });
  expect(rows[0].body).not.toHaveProperty("data");
});

test("what an event's viewer may see of it is computed once for a body", async () => {
  const client = await world.owner.connect();
  try {
    await client.query("begin; set local track_functions = 'pl'");
    await client.query("select set_config('plat.user_id', $1, true)", [world.owen.id]);
    const { rows } = await client.query(
      `with body as materialized (select app_private.webhook_body(e) as text from app_public.events e
         where e.organization_id = $1 and e.subject_type = 'project' and e.changes is null limit 1)
       select text::json ->> 'subjectType' as subject from body`,
      [world.harbour.id],
    );
    expect(rows).toEqual([{ subject: "project" }]);
    const { rows: calls } = await client.query(
      "select pg_stat_get_xact_function_calls('app_hidden.projects_event_value(uuid, jsonb, jsonb)'::regprocedure)::int as n",
    );
    expect(calls).toEqual([{ n: 1 }]);
  } finally {
    await client.query("rollback");
    client.release();
  }
});

test("ended deliveries are kept for 30 days", async () => {
  const made = await create();
  await lead("Old");
  await lead("Young");
  await reaches(made, (w) => w.deliveries.length === 2 && settled(w));
  await world.owner.query(
    `update app_public.webhook_deliveries d set inserted_at = now() - interval '31 days' from app_public.events e
     where e.id = d.event_id and e.data ->> 'name' = 'Old' and d.webhook_id = $1`,
    [made.id],
  );
  const outbox = await createOutbox();
  await world.owner.query("select app_private.add_job('webhook_deliveries__sweep')");
  await runJobs(world.database.ownerUrl, outbox.provider);
  await outbox.remove();
  expect((await read(made)).deliveries).toHaveLength(1);
});

test("a new URL gets the unaccepted events immediately", async () => {
  const made = await create("https://localhost:1/");
  await lead("Moved");
  expect(await reaches(made, settled)).toMatchObject({ failureCount: 1 });
  await world.owen.get(
    "mutation ($id: ID!, $url: URL!) { updateWebhook(input: { id: $id, url: $url }) { id } }",
    {
      id: made.id,
      url: receiver.url,
    },
  );
  expect((await receiver.next()).event.data.name).toBe("Moved");
  await reaches(made, (w) => w.deliveries[0].status === "SUCCEEDED");
});

test("a misbehaving receiver gets each event once after a day, and affects nobody else", async () => {
  await Promise.all(dispatchers.map((dispatcher) => dispatcher.stop()));
  dispatchers = [await dispatch(300)];
  const elsewhere = await startReceiver();
  const taken: string[] = [];
  let isBack = false;
  let turn = 0;
  receiver.answers((message, response, request) => {
    const take = () => taken.push(message.id);
    if (isBack) {
      take();
      return response.writeHead(204).end();
    }
    switch (turn++ % 5) {
      case 0:
        return response.writeHead(500).end("no");
      case 1:
        return; // hangs
      case 2:
        return response.writeHead(307, { location: elsewhere.url }).end();
      case 3:
        return request.socket.destroy();
      default: {
        // A success with a body of 100 MB is a success; the body is not read, and therefore not sent.
        take();
        response.writeHead(200, { "content-length": 100_000_000 });
        const part = Buffer.alloc(1_000_000);
        const more = () => {
          while (!response.destroyed && response.write(part));
        };
        response.on("error", () => {}).on("drain", more);
        return more();
      }
    }
  });
  const made = await create(receiver.url, ["lead.created"]);
  const names = Array.from({ length: 12 }, (_, n) => `Day${n}`);
  const ids = await Promise.all(names.map(lead));
  const tried = (webhook: any) =>
    webhook.deliveries.length === ids.length &&
    webhook.deliveries.every((d: any) => d.nextAttemptAt !== null || d.status === "SUCCEEDED");
  const waiting = (webhook: any) => webhook.deliveries.filter((d: any) => d.status === "RETRYING").length;
  // Advances time by a day repeatedly; each time every waiting delivery is attempted again.
  const aDayLater = async () => {
    await world.owner.query(
      `with queue as (update app_private.webhook_queue set due_at = due_at - interval '1 day' where webhook_id = $1 and not leased)
       update app_private.webhook_health set failing_since = failing_since - interval '1 day' where webhook_id = $1`,
      [made.id],
    );
  };
  const attempts = (webhook: any) => webhook.deliveries.map((d: any) => d.attempt);
  let now = await reaches(
    made,
    (webhook) =>
      tried(webhook) &&
      Math.min(...attempts(webhook)) >= 1 &&
      !webhook.deliveries.some((d: any) => d.status === "PENDING"),
  );
  expect(waiting(now)).toBeGreaterThan(ids.length / 2);
  const before = now;
  await aDayLater();
  now = await reaches(made, (webhook) =>
    webhook.deliveries.every((d: any) => d.status === "SUCCEEDED" || d.attempt >= 2),
  );
  expect(receiver.messages.length).toBeGreaterThan(attempts(before).length);
  isBack = true;
  const isUnderWay = async (): Promise<boolean> =>
    (
      await world.owner.query(
        "select exists (select from app_private.webhook_queue where webhook_id = $1 and (leased or due_at <= now())) as is",
        [made.id],
      )
    ).rows[0].is;
  await until(async () => {
    await until(isUnderWay, (is) => !is);
    if (!(await read(made)).deliveries.some((d: any) => d.status !== "SUCCEEDED")) return true;
    await aDayLater();
    return false;
  });
  const { rows } = await world.owner.query(
    "select id from app_public.events where name = 'lead.created' and subject_id = any ($1)",
    [ids],
  );
  expect(taken.toSorted()).toEqual(rows.map(({ id }) => id).toSorted());
  expect(elsewhere.messages).toEqual([]);
  expect((await read(made)).status).toBe("ENABLED");
  await elsewhere.close();
});
