/** Restoring database, files and keys to a point in time, after all of them were lost under load. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { execFile } from "node:child_process";
import { copyFile, cp, mkdir, open, readdir, realpath, rm, writeFile } from "node:fs/promises";
import { Agent, request } from "node:https";
import { join } from "node:path";
// oxlint-disable-next-line no-restricted-imports -- how often the writers write
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { Client, Pool } from "pg";
import { allBackups, archivedLog, openSeries } from "../../src/database/backupSeries.ts";
import { removeDataDir } from "../../src/database/dataDirs.ts";
import { embeddedUrl, startEmbeddedPostgres } from "../../src/database/embeddedServer.ts";
import { findBinaries } from "../../src/database/binaries.ts";
import { postmasterPort, startPostmaster } from "../../src/database/postmaster.ts";
import { databaseUser, type RunAs } from "../../src/database/systemUser.ts";
import { demoUser } from "../../src/demo/index.ts";
import { createLocalFolder } from "../../src/providers/files/localFolder.ts";
import { brokenInvariants } from "../../src/doctor/invariants.ts";
import {
  untilEnded,
  postmasterPid,
  runToExit,
  startService,
  type Exit,
  temporaryFolder,
  type Service,
} from "../harness/service.ts";
import { demoFolder } from "../harness/demoFolder.ts";
import { picture } from "../harness/upload.ts";
import { until } from "../harness/until.ts";

type Folder = AsyncDisposable & { path: string };

/** Milliseconds that each writer pauses between two changes. */
const restMs = 50;
const agent = new Agent({ rejectUnauthorized: false, keepAlive: true });
let before: Folder;
let archive: Folder;
let own: Folder;
let service: Service;
let token: string;
let projectId: string;
let moment: string;
const acknowledged: string[] = [];
const after: string[] = [];
let checksum: string;
let backedUp: Exit;

const command = (name: "backup" | "restore", args: string[], env: NodeJS.ProcessEnv = {}) =>
  runToExit({ entry: `src/cli/${name}.ts`, args, env: { ARCHIVE_DIR: archive.path, ...env } });

/** Gives a folder to the user of a server. */
async function give(folder: string, { uid, gid }: RunAs): Promise<void> {
  if (uid !== undefined) await promisify(execFile)("chown", ["-R", `${uid}:${gid}`, folder]);
}

async function ask(query: string, variables: object = {}): Promise<any> {
  const response = await new Promise<string>((done, fail) => {
    const headers = {
      "content-type": "application/json",
      ...(token && { authorization: `Bearer ${token}` }),
    };
    const outgoing = request(`${service.baseUrl}/graphql`, { method: "POST", agent, headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part: string) => (text += part));
      answer.on("error", fail).on("end", () => done(text));
    });
    outgoing.on("error", fail).end(JSON.stringify({ query, variables }));
  });
  const { data, errors } = JSON.parse(response);
  if (errors) throw new Error(JSON.stringify(errors));
  return data;
}

const createLead = async (name: string): Promise<string> => {
  const { createLead: lead } = await ask(
    "mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }",
    { input: { projectId, name } },
  );
  return lead.id;
};

/** Executes a query in the database of a data folder in use. */
async function rows(dataDir: string, text: string, values: unknown[] = []): Promise<any[]> {
  const port = postmasterPort(join(await realpath(join(dataDir, "postgres")), "data"))!;
  const client = new Client({ connectionString: await embeddedUrl(dataDir, port) });
  await client.connect();
  try {
    return (await client.query(text, values)).rows;
  } finally {
    await client.end();
  }
}

beforeAll(async () => {
  before = await demoFolder();
  archive = await temporaryFolder();
  own = await temporaryFolder();
  service = await startService({
    env: { DATA_DIR: before.path, ARCHIVE_DIR: archive.path, ARCHIVE_TIMEOUT: "1" },
  });
  token = (
    await ask("mutation ($input: LoginInput!) { login(input: $input) { token } }", {
      input: { username: demoUser.email, password: demoUser.password },
    })
  ).login.token;
  projectId = (await ask("{ projects(first: 1) { id } }")).projects[0].id;

  const writing = new AbortController();
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    for (let n = 0; !writing.signal.aborted; n++) {
      acknowledged.push(await createLead(`Lead ${n} of writer ${writer}`));
      await pause(restMs);
    }
  });
  backedUp = await command("backup", [], { DATA_DIR: before.path });
  // After the backup, so that only the archive contains it.
  const file = `data:image/png;base64,${(await picture("png")).toString("base64")}`;
  const { uploadProjectImage } = await ask(
    "mutation ($input: UploadProjectImageInput!) { uploadProjectImage(input: $input) { checksum } }",
    { input: { projectId, file } },
  );
  checksum = uploadProjectImage.checksum;
  const written = acknowledged.length;
  await until(
    () => acknowledged.length,
    (amount) => amount > written + 20,
  );
  writing.abort();
  await Promise.all(writers);

  // A new password is in use, while the keys in the backup contain the previous one.
  await rows(before.path, "alter role plat password 'the-password-that-was-set-anew-since-the-backup'");
  await writeFile(join(before.path, "postgres.password"), "the-password-that-was-set-anew-since-the-backup");

  const [{ now }] = await rows(before.path, "select clock_timestamp() as now");
  moment = now.toISOString();
  // Truncated to milliseconds, so changes committed from the next one on are later.
  await until(
    () => new Date(),
    (date) => date.getTime() > now.getTime(),
  );
  for (let n = 0; n < 5; n++) after.push(await createLead(`Lead ${n} that is too late`));
  const [{ segment }] = await rows(before.path, "select pg_walfile_name(pg_switch_wal()) as segment");
  const series = await openSeries(archive.path, before.path, {});
  await until(
    () => archivedLog(series),
    (names) => names.some((name) => name >= segment),
  );

  const database = await postmasterPid(before.path);
  await service.stop("SIGKILL");
  process.kill(database, "SIGKILL");
  await untilEnded(database);
  await removeDataDir(before.path);
}, 180_000);
afterAll(async () => {
  agent.destroy();
  await service?.stop();
  for (const folder of [before, archive, own]) await folder?.[Symbol.asyncDispose]();
});

test("a backup under load is complete", () => {
  const { code, stdout, stderr } = backedUp;
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining("Reading the backup back") });
  expect(stdout).toMatch(/^\d{4}-\S+Z {2}\S+ {2}\d+ MiB, \d+ contents of files\n$/);
});

test("restores the state at a time, from which the service continues", async () => {
  await using back = await temporaryFolder();
  const { code, stdout, stderr } = await command("restore", ["--at", moment], { DATA_DIR: back.path });
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining("Applying changes") });
  expect(stdout).toMatch(/^Restored into .*; the last change is of /);

  service = await startService({ env: { DATA_DIR: back.path, ARCHIVE_DIR: archive.path } });
  await using _ = service;
  const found = (await rows(back.path, "select id from app_public.leads")).map(({ id }) => id);
  expect(acknowledged.filter((id) => !found.includes(id))).toEqual([]);
  expect(after.filter((id) => found.includes(id))).toEqual([]);
  const port = postmasterPort(join(await realpath(join(back.path, "postgres")), "data"))!;
  const pool = new Pool({ connectionString: await embeddedUrl(back.path, port), max: 1 });
  expect(await brokenInvariants(pool)).toEqual({});
  await pool.end();
  // The picture is later than the backup; the token was signed by a key of the lost folder.
  expect(await createLocalFolder(join(back.path, "files")).size(checksum)).toBeGreaterThan(0);
  expect(await createLead("First after the restore")).toBeTruthy();
  // As for any server that is not started by the service.
  const env = { DATA_DIR: back.path, ARCHIVE_DIR: own.path };
  const DATABASE_URL = await embeddedUrl(back.path, port);
  expect(await command("backup", [], { ...env, DATABASE_URL })).toMatchObject({ code: 0 });
  // Later changes are archived in another series, so that the earlier archive can still be restored.
  const series = await openSeries(archive.path, back.path, {});
  expect((await allBackups(archive.path)).map((backup) => backup.series)).not.toContain(series);
}, 180_000);

test("what cannot be restored is refused with a reason, and leaves nothing behind", async () => {
  await using back = await temporaryFolder();
  const refused = async (args: string[], env: NodeJS.ProcessEnv = {}) => {
    const { code, stderr } = await command("restore", args, { DATA_DIR: back.path, ...env });
    expect(code).toBe(1);
    expect(await readdir(back.path)).toEqual([]);
    return stderr.trim().split("\n").at(-1);
  };
  const [backup] = await allBackups(archive.path);
  expect(await refused(["--at", "2026-01-01"])).toBe(
    "--at needs a time with its offset, such as 2026-11-21T14:03Z.",
  );
  expect(await refused(["--at", "2020-01-01T00:00Z"])).toMatch(/^The first backup of .* was finished at /);
  expect(await refused(["--at", "2999-01-01T00:00Z"])).toMatch(
    /^The archive does not reach 2999-01-01T00:00:00.000Z: its last change is of \S+Z\. Omit --at/,
  );
  expect(await refused([], { ARCHIVE_DIR: back.path })).toMatch(/^There is no complete backup in /);
  expect(await refused([], { ARCHIVE_DIR: "" })).toMatch(/^ARCHIVE_DIR is not set/);
  expect(await refused(["--into", archive.path])).toMatch(/ is not empty, and nothing is restored over /);

  await using damaged = await temporaryFolder();
  await cp(archive.path, damaged.path, { recursive: true });
  const tar = join(damaged.path, backup!.folder.slice(archive.path.length), "base.tar.gz");
  const file = await open(tar, "r+");
  await file.write(Buffer.from("damaged"), 0, 7, (await file.stat()).size / 2);
  await file.close();
  expect(await refused([], { ARCHIVE_DIR: damaged.path })).toMatch(/^The backup .* is damaged: /);
  const { code, stderr } = await command("backup", ["--verify"], { ARCHIVE_DIR: damaged.path });
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("is damaged") });
}, 180_000);

test("an external database recovers when its server starts on the unpacked folder", async () => {
  await using folder = await temporaryFolder();
  const into = join(folder.path, "cluster");
  const { code, stdout } = await command("restore", ["--cluster", "--into", into], {
    ARCHIVE_DIR: own.path,
  });
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("start that on it") });
  const runAs = databaseUser(undefined);
  const { postgres } = await findBinaries(runAs);
  for (const each of [into, `${into}.wal`]) await give(each, runAs);
  const server = await startPostmaster({
    postgres,
    data: into,
    logFile: join(folder.path, "log"),
    runAs,
    settings: { listen_addresses: "127.0.0.1", unix_socket_directories: "" },
  });
  try {
    const [backup] = await allBackups(own.path);
    await copyFile(join(backup!.folder, "keys", "postgres.password"), join(folder.path, "postgres.password"));
    const client = new Client({ connectionString: await embeddedUrl(folder.path, server.port, "postgres") });
    await client.connect();
    // It accepts queries while it recovers.
    const recovering = async () => (await client.query("select pg_is_in_recovery() as so")).rows[0].so;
    await until(recovering, (so) => !so);
    await client.query("alter database plat rename to homes");
    await client.end();
    const env = { DATA_DIR: join(folder.path, "other"), ARCHIVE_DIR: own.path };
    const DATABASE_URL = await embeddedUrl(folder.path, server.port, "homes");
    await mkdir(env.DATA_DIR);
    // Files need not be where this service expects them, because the archive contains them.
    expect(await command("backup", [], { ...env, DATABASE_URL })).toMatchObject({ code: 0 });
    expect((await allBackups(own.path)).map(({ facts }) => facts.database)).toEqual(["plat", "homes"]);
  } finally {
    await server.stop();
  }
}, 180_000);

test("an external database of any name becomes the embedded one of a data folder", async () => {
  await using back = await temporaryFolder();
  const restored = await command("restore", ["--into", back.path], { ARCHIVE_DIR: own.path });
  expect(restored).toMatchObject({ code: 0 });
  // As on a machine that lost this file as well.
  await rm(join(back.path, "postgres.password"));
  const warnings: string[] = [];
  const database = await startEmbeddedPostgres({
    dataDir: back.path,
    logger: { info: () => {}, warn: (_fields, text) => warnings.push(text) },
  });
  try {
    const found = (await rows(back.path, "select id from app_public.leads")).map(({ id }) => id);
    expect(acknowledged.filter((id) => !found.includes(id))).toEqual([]);
  } finally {
    await database.stop();
  }
  expect(warnings).toEqual(["The password of the embedded database was lost; it has a new one."]);
}, 180_000);
