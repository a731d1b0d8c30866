/** A process with event streams is killed while events are written: reconnecting clients receive each event once. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { jwtKeys, secretKeys } from "../harness/api.ts";
import { openStream, type OpenStream } from "../harness/eventStream.ts";
import { startService, temporaryFolder, type Service } from "../harness/service.ts";
import { until } from "../harness/until.ts";
import { startWorld, type World } from "../harness/world.ts";

const events = 400;
const kills = 2;
const readers = 12;

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world?.stop());

test("no event is lost or repeated, however often the process dies", async () => {
  await using folder = await temporaryFolder();
  const keys = (list: readonly { kid: string; secret: string }[]) =>
    list.map(({ kid, secret }) => `${kid}:${secret}`).join(",");
  const env = {
    DATABASE_URL: world.database.ownerUrl,
    DATA_DIR: folder.path,
    JWT_KEYS: keys(jwtKeys),
    SECRET_KEYS: keys(secretKeys),
  };
  let service: Service = await startService({ env, args: ["--api-only"] });
  const head = async () => {
    const text = "select last_sequence from app_private.event_counters where stream_id = $1";
    return Number((await world.owner.query(text, [world.harbour.id])).rows[0].last_sequence);
  };
  const begun = await head();
  let isOver = false;
  let isThere = true;

  /** Reads the stream across all deaths; returns the sequence numbers in the order of arrival. */
  async function follow(token: string, last: () => number): Promise<number[]> {
    const received: number[] = [];
    let lastId = String(begun);
    while (Number(lastId) < last()) {
      let stream: OpenStream;
      try {
        const given = { organizationId: world.harbour.id };
        stream = await openStream(service.baseUrl, token, given, { "last-event-id": lastId });
      } catch {
        await until(() => isThere, Boolean, { withinMs: 60_000 });
        continue;
      }
      await until(() => stream.isClosed || Number(stream.lastId ?? 0) >= last(), Boolean, {
        withinMs: 60_000,
      });
      received.push(...stream.events.map(({ sequence }) => Number(sequence)));
      lastId = stream.lastId ?? lastId;
      stream.close();
    }
    return received;
  }

  const following = Array.from({ length: readers }, (_, n) =>
    follow((n % 2 ? world.owen : world.ada).token!, () => (isOver ? begun + events : Infinity)),
  );
  for (let round = 0; round < kills; round += 1) {
    const writing = Array.from({ length: 4 }, async (_, writer) => {
      for (let n = 0; n < events / kills / 4; n += 1)
        await world.owner.query("insert into app_public.leads (project_id, name) values ($1, $2)", [
          world.project.id,
          `Written by ${writer}`,
        ]);
    });
    const before = await head();
    // In the middle of the stream.
    await until(head, (now) => now > before + 20);
    isThere = false;
    await service.stop("SIGKILL");
    service = await startService({ env, args: ["--api-only"] });
    isThere = true;
    await Promise.all(writing);
  }
  expect(await head()).toBe(begun + events);
  isOver = true;
  const all = Array.from({ length: events }, (_, n) => begun + 1 + n);
  for (const received of await Promise.all(following)) expect(received).toEqual(all);
  await service.stop();
}, 180_000);
