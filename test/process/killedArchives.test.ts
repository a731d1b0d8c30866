/** A worker is killed after it has stored an object of old events, and before that is recorded: nothing is lost. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { createFileStore } from "../../src/providers/files/index.ts";
import { startWorld, type World } from "../harness/world.ts";
import { killChild, startChild } from "../harness/child.ts";
import { until } from "../harness/until.ts";

let world: World;
let tasks: string;
const kills: (() => Promise<void>)[] = [];

beforeAll(async () => {
  world = await startWorld();
  tasks = await mkdtemp(join(tmpdir(), "plat-killed-"));
  // Only this task.
  const task = resolve(import.meta.dirname, "../../src/tasks/events__archive.ts");
  await writeFile(
    join(tasks, "events__archive.js"),
    `export { default } from ${JSON.stringify(pathToFileURL(task).href)};`,
  );
  await world.owner.query(
    `begin; set local session_replication_role = 'replica';
     update app_public.events set occurred_at = now() - interval '3000 days' where organization_id = '${world.harbour.id}'; commit`,
  );
  await world.owner.query("select app_private.skip_notifications()");
});
afterAll(async () => {
  for (const kill of kills) await kill();
  await world.stop();
  await rm(tasks, { recursive: true, force: true });
});

function startWorker() {
  const child = startChild(
    [
      resolve(import.meta.dirname, "../harness/workerProcess.ts"),
      world.database.ownerUrl,
      tasks,
      world.dataDir,
    ],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  const kill = () => killChild(child);
  kills.push(kill);
  return { kill };
}

const contents = async () =>
  (
    await world.owner.query(
      "select md5(string_agg(data::text || coalesce(changes::text, ''), ' ' order by sequence)) as content, count(archived_at)::int as archived from app_public.events where organization_id = $1",
      [world.harbour.id],
    )
  ).rows[0];
const archives = async () =>
  (
    await world.owner.query<{ checksum: string; recorded: boolean }>(
      "select checksum, recorded_at is not null as recorded from app_private.event_archives where organization_id = $1",
      [world.harbour.id],
    )
  ).rows;
const read = async () =>
  (
    await world.owen.get(
      "query ($id: ID!) { events(filter: { organizationId: $id }, first: 100) { id data changes } }",
      { id: world.harbour.id },
    )
  ).events;

test("the next worker archives the same events with the object that is there", async () => {
  const { owner, harbour } = world;
  const [before, unarchived] = [await read(), await contents()];
  const holder = await owner.connect();
  await holder.query("begin");
  await holder.query("select app_private.lock_event_archives($1, true)", [harbour.id]);
  await owner.query("select app_private.add_job('events__archive')");
  const first = startWorker();
  const waiting =
    "from pg_stat_activity where query like '%record_event_archive%' and wait_event_type = 'Lock'";
  await until(
    () => owner.query(`select ${waiting}`),
    ({ rowCount }) => rowCount === 1,
    { withinMs: 30_000 },
  );
  await first.kill();
  // What the server has begun for it must not succeed either.
  await owner.query(`select pg_terminate_backend(pid) ${waiting}`);
  await holder.query("rollback");
  holder.release();

  const [left] = await archives();
  expect(left).toMatchObject({ recorded: false });
  const store = createFileStore({ dataDir: world.dataDir });
  expect(await store.size(left!.checksum)).toBeGreaterThan(0);
  expect(await contents()).toEqual(unarchived);

  startWorker();
  const archived = await until(archives, ([archive]) => archive?.recorded === true, { withinMs: 60_000 });
  expect(archived).toEqual([{ ...left, recorded: true }]);
  expect((await contents()).archived).toBe(before.length);
  expect(await read()).toEqual(before);
}, 120_000);
