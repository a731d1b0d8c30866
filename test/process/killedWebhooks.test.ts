/**
 * Workers are killed while events are written and sent: the receiver gets every committed event, and none that was
 * rolled back.
 * The long form writes a thousand events, and kills five times.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { secretKeys } from "../harness/api.ts";
import { long } from "../harness/seeds.ts";
import { startService, temporaryFolder } from "../harness/service.ts";
import { until } from "../harness/until.ts";
import { startWorld, type World } from "../harness/world.ts";
import { startReceiver, status, type Receiver } from "../webhooks/receiver.ts";

const committed = long ? 1000 : 300;
const rolledBack = committed / 5;
const kills = long ? 5 : 2;

let world: World;
let receiver: Receiver;

beforeAll(async () => {
  world = await startWorld(undefined, { loopbackWebhooks: true });
  receiver = await startReceiver();
});
afterAll(async () => {
  await receiver?.close();
  await world?.stop();
});

test("nothing is lost and nothing invented, however often the worker dies", async () => {
  await using folder = await temporaryFolder();
  const env = {
    DATABASE_URL: world.database.ownerUrl,
    DATA_DIR: folder.path,
    SECRET_KEYS: secretKeys.map(({ kid, secret }) => `${kid}:${secret}`).join(","),
    LOOPBACK_WEBHOOKS: "1",
  };
  await world.owen.get("mutation ($input: CreateWebhookInput!) { createWebhook(input: $input) { id } }", {
    input: { organizationId: world.harbour.id, url: receiver.url, events: ["lead.created"] },
  });
  const arrived = () => new Set(receiver.messages.map(({ id }) => id));

  /** A part of the writes: five are committed, then one is rolled back. */
  async function write(amount: number): Promise<void> {
    const client = await world.owner.connect();
    for (let n = 0; n < amount; n += 1) {
      await client.query("begin");
      await client.query("insert into app_public.leads (project_id, name) values ($1, $2)", [
        world.project.id,
        n % 6 === 5 ? "Ghost" : "Real",
      ]);
      await client.query(n % 6 === 5 ? "rollback" : "commit");
    }
    client.release();
  }

  const part = (committed + rolledBack) / kills;
  for (let round = 0; round < kills; round += 1) {
    const worker = await startService({ env, args: ["--worker-only"] });
    const before = receiver.messages.length;
    const writing = write(part);
    // In the middle of the deliveries.
    await until(
      () => receiver.messages.length,
      (length) => length >= before + 40,
    );
    // One delivery is in progress when it dies: from here on, requests get no response.
    receiver.answers(() => {});
    const answered = receiver.messages.length;
    await until(
      () => receiver.messages.length,
      (length) => length > answered,
    );
    await worker.stop("SIGKILL");
    receiver.answers(status(204));
    await writing;
  }
  const { rows } = await world.owner.query<{ id: string; name: string }>(
    "select e.id, e.data ->> 'name' as name from app_public.events e where e.name = 'lead.created'",
  );
  expect(rows).toHaveLength(committed);
  const { rowCount: held } = await world.owner.query("select from app_private.webhook_queue where leased");
  expect(held).toBeGreaterThan(0);
  await using worker = await startService({ env, args: ["--worker-only"] });
  await until(
    () => arrived().size,
    (size) => size >= committed,
    { withinMs: 60_000 },
  );
  expect(arrived()).toEqual(new Set(rows.map(({ id }) => id)));
  expect(receiver.messages.filter(({ event }) => event.data.name !== "Real")).toEqual([]);
  await until(
    () => world.owner.query("select from app_private.webhook_queue"),
    ({ rowCount }) => rowCount === 0,
  );
  const { rows: outcomes } = await world.owner.query(
    "select status::text, count(*)::int as amount from app_public.webhook_deliveries group by status",
  );
  expect(outcomes).toEqual([{ status: "SUCCEEDED", amount: committed }]);
  expect(worker.pid).toBeGreaterThan(0);
}, 180_000);
