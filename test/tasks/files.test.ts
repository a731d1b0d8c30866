import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createFiles } from "../../src/files/files.ts";
import { incomingFolder, processName } from "../../src/providers/files/incoming.ts";
import { removeLeftoversOfDead } from "../../src/providers/files/leftovers.ts";
import { createFileStore, type FileStore } from "../../src/providers/files/index.ts";
import { picture } from "../harness/upload.ts";
import { startWorld, type World } from "../harness/world.ts";
import { createOutbox, runJobs, type Outbox } from "./worker.ts";
import { until } from "../harness/until.ts";

let world: World;
let outbox: Outbox;
let fileStore: FileStore;

beforeAll(async () => {
  world = await startWorld();
  outbox = await createOutbox();
  fileStore = createFileStore({ dataDir: world.dataDir });
});
afterAll(async () => {
  await outbox.remove();
  await world.stop();
});

let side = 10;
/** Uploads a picture with unique content. */
async function upload(): Promise<{ id: string; checksum: string }> {
  const file = `data:;base64,${(await picture("png", side++, 10)).toString("base64")}`;
  const { uploadProjectImage } = await world.ada.get(
    `mutation ($input: UploadProjectImageInput!) { uploadProjectImage(input: $input) { id checksum } }`,
    { input: { projectId: world.project.id, file } },
  );
  return uploadProjectImage;
}

/** Content of an upload whose process died after storing it: no row refers to it. */
async function orphan(): Promise<string> {
  const { take } = createFiles({ store: fileStore, pool: world.owner, incomingFolder: world.dataDir });
  const bytes = await picture("png", side++, 10);
  return (await take(Readable.from([bytes]), "storeImage", "lost.png")).checksum;
}

async function contents(): Promise<string[]> {
  const folder = join(world.dataDir, "files");
  const found = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return found.filter((entry) => entry.isFile()).map(({ parentPath, name }) => parentPath.slice(-2) + name);
}

const passTime = (interval: string) =>
  world.owner.query(
    `with files as (update app_private.stored_files set check_at = check_at - $1::interval)
     update app_public.project_images set deleted_at = deleted_at - $1::interval where deleted_at is not null`,
    [interval],
  );

async function sweep(store: FileStore = fileStore): Promise<string[]> {
  await world.owner.query("select app_private.add_job('files__sweep')");
  const log = await runJobs(world.database.ownerUrl, outbox.provider, store);
  return log.filter((line) => line.startsWith("error"));
}

test("sweeps content without a row a day after its upload", async () => {
  const kept = await upload();
  const lost = await orphan();
  expect(await sweep()).toEqual([]);
  expect(await contents()).toEqual(expect.arrayContaining([lost, kept.checksum]));
  await passTime("25 hours");
  await sweep();
  const left = await contents();
  expect(left).not.toContain(lost);
  expect(left).not.toContain(`${lost}.thumbnail`);
  expect(left).toEqual(expect.arrayContaining([kept.checksum, `${kept.checksum}.thumbnail`]));
  const { rows } = await world.owner.query("select 1 from app_private.stored_files where checksum = $1", [
    lost,
  ]);
  expect(rows).toEqual([]);
});

test("unfinished content of a dead process is deleted after a day", async () => {
  const folder = incomingFolder(tmpdir());
  const [old, young] = [randomUUID(), randomUUID()].map((name) => join(folder, `${name}.part`)) as [
    string,
    string,
  ];
  await mkdir(folder, { recursive: true });
  await Promise.all([old, young].map((path) => writeFile(path, "x")));
  const dayAgo = new Date(Date.now() - 25 * 3_600_000);
  await utimes(old, dayAgo, dayAgo);
  const swept: Date[] = [];
  expect(await sweep({ ...fileStore, sweep: async (before) => void swept.push(before) })).toEqual([]);
  expect(swept.map((before) => before > dayAgo && before < new Date(Date.now() - 23 * 3_600_000))).toEqual([
    true,
  ]);
  const left = await readdir(folder);
  expect([left.includes(basename(old)), left.includes(basename(young))]).toEqual([false, true]);
  await rm(young);
});

test("incoming content of dead processes of this machine is deleted when a process starts", async () => {
  const folder = await mkdtemp(join(tmpdir(), "plat-incoming-"));
  const machine = processName.replace(/\d+\.$/, "");
  // No process has an id above this.
  const [dead, own, alive] = [4_194_305, process.pid, process.ppid].map((pid) => `${machine}${pid}.ab.part`);
  const elsewhere = `upload-000000000000-${4_194_305}.ab.part`;
  const others = ["export-1.ab.part", elsewhere];
  await Promise.all([dead!, own!, alive!, ...others].map((name) => writeFile(join(folder, name), "x")));
  await removeLeftoversOfDead(folder);
  expect((await readdir(folder)).toSorted()).toEqual([alive!, ...others].toSorted());
  await rm(folder, { recursive: true });
});

test("a deleted file is removed after a week, unless another row has the same content", async () => {
  const gone = await upload();
  await passTime("25 hours");
  await sweep();
  await world.ada.get(`mutation ($id: ID!) { deleteProjectImage(input: { id: $id }) { deleted } }`, {
    id: gone.id,
  });
  await passTime("6 days");
  await sweep();
  expect(await contents()).toContain(gone.checksum);
  await passTime("2 days");
  await sweep();
  expect(await contents()).not.toContain(gone.checksum);
});

test("if the store fails, the content stays registered, and the sweep retries", async () => {
  const lost = await orphan();
  await passTime("25 hours");
  const failing: FileStore = {
    ...fileStore,
    delete: () => Promise.reject(new Error("The store is away.")),
  };
  expect(await sweep(failing)).toEqual([expect.stringContaining("The store is away.")]);
  expect(await contents()).toContain(lost);
  await world.owner.query(
    "select graphile_worker.reschedule_jobs(array(select id from graphile_worker.jobs), now())",
  );
  await sweep();
  expect(await contents()).not.toContain(lost);
});

test("many are swept in batches, and none is left", async () => {
  await world.owner.query(
    `insert into app_private.stored_files (checksum, filemime, filesize, check_at)
     select encode(sha256(i::text::bytea), 'hex'), 'image/png', 1, now() - interval '1 hour' from generate_series(1, 250) i`,
  );
  await sweep();
  const { rows } = await world.owner.query(
    "select count(*)::int as n from app_private.stored_files where check_at < now()",
  );
  expect(rows).toEqual([{ n: 0 }]);
});

test("content that is swept during another upload of it is stored again", async () => {
  const lost = await orphan();
  await passTime("25 hours");
  const sweeper = await world.owner.connect();
  try {
    await sweeper.query("begin");
    const { rows } = await sweeper.query("select app_private.sweep_files(100) as checksum");
    expect(rows).toContainEqual({ checksum: lost });
    side--;
    const again = upload();
    // The upload waits for the sweep, which deletes first.
    await until(waits);
    await fileStore.delete([lost, `${lost}.thumbnail`]);
    await sweeper.query("commit");
    expect((await again).checksum).toBe(lost);
    expect(await contents()).toContain(lost);
  } finally {
    sweeper.release();
  }
});

async function waits(): Promise<boolean> {
  const { rows } = await world.owner.query(
    "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  );
  return rows[0].n > 0;
}
