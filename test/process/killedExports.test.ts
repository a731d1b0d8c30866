/** A worker is killed while it writes an export: another one continues, and there is one complete file. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { buffer } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { incomingFolder } from "../../src/providers/files/incoming.ts";
import { createFileStore } from "../../src/providers/files/index.ts";
import { startWorld, type World } from "../harness/world.ts";
import { killChild, startChild } from "../harness/child.ts";
import { until } from "../harness/until.ts";

const amount = 900;
/** Reading this row waits for the lock of the test. */
const gated = 200;
const gate = 4711;

let world: World;
let dataDir: string;
const kills: (() => Promise<void>)[] = [];

beforeAll(async () => {
  world = await startWorld();
  dataDir = await mkdtemp(join(tmpdir(), "plat-killed-"));
  // Only this task.
  const task = resolve(import.meta.dirname, "../../src/tasks/export__requested.ts");
  await writeFile(
    join(dataDir, "export__requested.js"),
    `export { default } from ${JSON.stringify(pathToFileURL(task).href)};`,
  );
  await world.owner.query(
    "insert into app_public.tasks (organization_id, project_id, title) select $1, $2, 'Task ' || i from generate_series(1, $3::int) i",
    [world.harbour.id, world.project.id, amount],
  );
  await world.owner.query(
    `create function app_hidden.gated(title text) returns text language plpgsql volatile as $$
     begin
       if title = 'Task ${gated}' then
         perform pg_advisory_lock_shared(${gate});
         perform pg_advisory_unlock_shared(${gate});
       end if;
       return title;
     end $$;
     grant execute on function app_hidden.gated to plat_user;
     update app_hidden.report_columns set expression = 'app_hidden.gated(t.title)' where subject = 'TASKS' and name = 'title'`,
  );
});
afterAll(async () => {
  for (const kill of kills) await kill();
  await world.stop();
  await rm(dataDir, { recursive: true, force: true });
});

function startWorker() {
  const child = startChild(
    [
      resolve(import.meta.dirname, "../harness/workerProcess.ts"),
      world.database.ownerUrl,
      dataDir, // of the task
      dataDir,
    ],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  const kill = () => killChild(child);
  kills.push(kill);
  return { kill };
}
const begun = () => readdir(incomingFolder(dataDir)).catch(() => []);

test("there is one complete and correct file, and nothing else is left", async () => {
  const { owen, owner, harbour } = world;
  const holder = await owner.connect();
  await holder.query("select pg_advisory_lock($1)", [gate]);
  const { createCustomExport } = await owen.get(
    "mutation ($input: CreateCustomExportInput!) { createCustomExport(input: $input) { id } }",
    {
      input: {
        organizationId: harbour.id,
        name: "Tasks",
        subject: "TASKS",
        format: "CSV",
        columns: ["title"],
      },
    },
  );
  const { runCustomExport } = await owen.get(
    "mutation ($id: ID!) { runCustomExport(input: { id: $id }) { id } }",
    createCustomExport,
  );
  const { id } = runCustomExport;
  const reaches = (met: (found: { status: string; progress: number }) => boolean) =>
    until(
      async () => (await owen.get("query ($id: ID!) { export(id: $id) { status progress } }", { id })).export,
      met,
      { withinMs: 60_000 },
    );
  const attempt = async () =>
    (
      await owner.query<{ attempts: number; rows_done: number; worker: string }>(
        "select attempts, rows_done, worker from app_private.export_runs where export_id = $1",
        [id],
      )
    ).rows[0]!;

  const first = startWorker();
  // Two batches are in the file, the third waits.
  expect(await reaches(({ progress }) => progress > 0)).toEqual({ status: "PROCESSING", progress: 0.56 });
  const left = await begun();
  expect(left).toEqual([expect.stringMatching(`^export-${id}\\..+\\.part$`)]);
  expect((await stat(join(incomingFolder(dataDir), left[0]!))).size).toBeGreaterThan(4000);
  const { worker: killed } = await attempt();
  startWorker();
  await first.kill();

  // The dead worker is detected long before its lease ends; the other one starts again, and the former file
  // is removed.
  await until(attempt, ({ attempts }) => attempts > 1, { withinMs: 60_000 });
  expect(await reaches(({ progress }) => progress === 0.56)).toMatchObject({ status: "PROCESSING" });
  const again = await begun();
  expect(again).toHaveLength(1);
  expect(again).not.toEqual(left);
  await holder.query("select pg_advisory_unlock($1)", [gate]);
  holder.release();
  await reaches(({ status }) => status === "COMPLETED");
  const { attempts, worker } = await attempt();
  expect([attempts, worker === killed]).toEqual([2, false]);

  await until(begun, (files) => files.length === 0);
  const files = await readdir(join(dataDir, "files"), { recursive: true, withFileTypes: true });
  const kept = files.filter((file) => file.isFile());
  expect(kept).toHaveLength(1);
  const content = await createFileStore({ dataDir }).get(kept[0]!.parentPath.slice(-2) + kept[0]!.name);
  expect((await buffer(content!)).toString()).toBe(
    `\ufefftitle\r\n${Array.from({ length: amount }, (_, i) => `Task ${amount - i}\r\n`).join("")}`,
  );
  const { rowCount } = await owner.query(
    "select from app_public.events where subject_id = $1 and name = 'export.completed'",
    [id],
  );
  expect(rowCount).toBe(1);
});
