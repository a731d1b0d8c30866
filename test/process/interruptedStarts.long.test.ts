/**
 * All connections to the database are cut at one moment of a start, at another one each time: the process ends with a
 * code by which its supervisor restarts it, or does all of its work. CUTS sets the number of moments, spread over the
 * duration of a start: `npm run test:long -- test/process/interruptedStarts`.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { readdir, readFile } from "node:fs/promises";
import { Agent } from "node:https";
import { join } from "node:path";
// oxlint-disable-next-line no-restricted-imports -- the moment of the cut
import { setTimeout as delay } from "node:timers/promises";
import { exitCodes } from "../../src/base/exitCodes.ts";
import { jwtKeys, secretKeys } from "../harness/api.ts";
import { openStream } from "../harness/eventStream.ts";
import { post } from "../harness/load.ts";
import { startProxy } from "../harness/proxy.ts";
import { startService, temporaryFolder, type Service } from "../harness/service.ts";
import { until } from "../harness/until.ts";
import { startWorld, type World } from "../harness/world.ts";
import { startReceiver, type Receiver } from "../webhooks/receiver.ts";
import { createWorkflow } from "../workflows/world.ts";

const cuts = Number(process.env.CUTS ?? 24);
const outageMs = 300;

let world: World;
let receiver: Receiver;
beforeAll(async () => {
  world = await startWorld(undefined, { loopbackWebhooks: true });
  receiver = await startReceiver();
  await world.owen.get("mutation ($input: CreateWebhookInput!) { createWebhook(input: $input) { id } }", {
    input: { organizationId: world.harbour.id, url: receiver.url, events: ["lead.created"] },
  });
  await createWorkflow(
    world,
    [
      { type: "CREATE_TASK", config: { title: "Call" } },
      {
        type: "SEND_EMAIL",
        config: { to: "MEMBER", memberId: world.ada.id, subject: "New", body: "{{ lead.name }} has come." },
      },
    ],
    { trigger: { type: "EVENT", event: "lead.created" } },
  );
});
afterAll(async () => {
  await receiver?.close();
  await world?.stop();
});

test("a process whose start was interrupted does all of its work, or ends to be restarted", async () => {
  await using folder = await temporaryFolder();
  await using database = await startProxy(Number(new URL(world.database.ownerUrl).port));
  const keys = (list: readonly { kid: string; secret: string }[]) =>
    list.map(({ kid, secret }) => `${kid}:${secret}`).join(",");
  const env = {
    DATABASE_URL: database.through(world.database.ownerUrl),
    DATA_DIR: folder.path,
    JWT_KEYS: keys(jwtKeys),
    SECRET_KEYS: keys(secretKeys),
    LOOPBACK_WEBHOOKS: "1",
  };
  const start = () => startService({ env });

  /** Creates a lead over the API, and waits for everything that other parts of the process do about it. */
  async function works(service: Service, name: string): Promise<void> {
    await until(
      () => service.get("/readyz").catch(() => ({ status: 0 })),
      ({ status }) => status === 200,
      { withinMs: 60_000 },
    );
    const stream = await openStream(service.baseUrl, world.owen.token, { organizationId: world.harbour.id });
    const { errors } = await post(
      new Agent(),
      service.baseUrl,
      {
        query: "mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }",
        variables: { input: { projectId: world.project.id, name } },
      },
      { authorization: `Bearer ${world.owen.token}` },
    );
    expect(errors).toBeUndefined();
    const mails = async () => {
      const box = join(folder.path, "outbox");
      // Others are still being written.
      const complete = (await readdir(box).catch(() => [])).filter((file) => file.endsWith(".eml"));
      const texts = await Promise.all(complete.map((file) => readFile(join(box, file), "utf8")));
      return texts.some((text) => text.includes(`${name} has come.`));
    };
    await until(
      async () => ({
        live: JSON.stringify(stream.events).includes(name),
        webhook: receiver.messages.some(({ text }) => text.includes(name)),
        mail: await mails(),
        ...(
          await world.owner.query<{ task: boolean; notified: boolean }>(
            `select exists (select from app_public.tasks t where t.lead_id = l.id) as task,
               exists (select from app_private.notification_progress p join app_public.events e on e.subject_id = l.id
                 where p.organization_id = l.organization_id and p.last_sequence >= e.sequence) as notified
             from app_public.leads l where l.name = $1`,
            [name],
          )
        ).rows[0]!,
      }),
      (done) => Object.values(done).every(Boolean),
      { withinMs: 60_000 },
    );
    stream.close();
  }

  const began = performance.now();
  const whole = await start();
  const durationMs = performance.now() - began;
  await works(whole, "Uninterrupted");
  await whole.stop();

  const outcomes: Record<string, number> = {};
  for (let cut = 1; cut <= cuts; cut += 1) {
    // Some of them are shortly after it is ready, when its parts do their first work.
    const afterMs = Math.round((durationMs * 1.2 * cut) / cuts);
    const starting = start().catch((error: Error) => error);
    await delay(afterMs);
    database.shut();
    await delay(outageMs);
    database.open();
    const service = await starting;
    if (service instanceof Error) {
      const [, code] = /before it was ready \((\w+)\)/.exec(service.message) ?? [];
      outcomes[`exit ${code}`] = (outcomes[`exit ${code}`] ?? 0) + 1;
      if (Number(code) !== exitCodes.failed && Number(code) !== exitCodes.unable)
        throw new Error(`Cut after ${afterMs} ms`, { cause: service });
      continue;
    }
    await works(service, `Cut ${afterMs}`).catch((cause: Error) => {
      throw new Error(`Cut after ${afterMs} ms: ${service.log().slice(-4_000)}`, { cause });
    });
    outcomes.works = (outcomes.works ?? 0) + 1;
    expect((await service.stop()).code).toBe(0);
  }
  process.stderr.write(`Starts of ${Math.round(durationMs)} ms, cut: ${JSON.stringify(outcomes)}\n`);
  expect(outcomes.works).toBeGreaterThan(0);
}, 3_600_000);
