import { randomUUID } from "node:crypto";
import { chown, lstat, mkdir, readdir, realpath, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { sharedFolder } from "./binaries.ts";
import { stopLeftover } from "./postmaster.ts";
import { canReach, type RunAs } from "./systemUser.ts";

/**
 * The folder of the cluster: `DATA_DIR/postgres`. If the database user cannot reach it (root started us in a folder
 * of mode 0700), it is a symbolic link to a folder below /var/lib/plat, so that we never change the mode of a folder
 * that we did not create.
 * @returns the real path, and the path as the user knows it.
 */
export async function clusterFolder(
  dataDir: string,
  runAs: RunAs,
): Promise<{ folder: string; shownAs: string }> {
  const shownAs = join(dataDir, "postgres");
  if (!(await lstat(shownAs).catch(() => undefined))) await create(dataDir, shownAs, runAs);
  const folder = await realpath(shownAs).catch((error: unknown) => {
    throw new Error(
      `${shownAs} points to a folder that is gone; restore it, or remove the link to start empty.`,
      {
        cause: error,
      },
    );
  });
  if (!canReach(folder, runAs))
    throw new Error(
      `The database's system user cannot reach ${folder}: open the folders above it for passing (chmod o+x), move DATA_DIR, or set DATABASE_URL.`,
    );
  await completeUpgrade(folder);
  await removeUnfinished(folder);
  return { folder, shownAs };
}

async function create(dataDir: string, shownAs: string, runAs: RunAs): Promise<void> {
  let folder = shownAs;
  if (!canReach(dataDir, runAs)) {
    folder = join(sharedFolder, "clusters", randomUUID());
    await mkdir(join(sharedFolder, "clusters"), { recursive: true, mode: 0o755 });
  }
  await mkdir(folder, { mode: 0o700 });
  if (runAs.uid !== undefined && runAs.gid !== undefined) await chown(folder, runAs.uid, runAs.gid);
  if (folder === shownAs) return;
  // Explains the folder to anyone who finds it.
  await writeFile(
    join(folder, "README"),
    `PostgreSQL cluster of the Plat service with DATA_DIR=${dataDir}\n`,
  );
  await symlink(folder, shownAs);
}

/** The folder in which an upgrade creates the new cluster, in `data`, from a copy of the old one, in `old`. */
export const unfinishedUpgrade = (folder: string): string => join(folder, "unfinished-upgrade");

/**
 * An upgrade moves the old cluster away once the new one is complete; nothing else leaves an upgrade folder without a
 * cluster beside it. If it was killed at that moment, it is completed here; otherwise the new cluster would be
 * deleted and an empty one created.
 */
async function completeUpgrade(folder: string): Promise<void> {
  const data = join(folder, "data");
  const made = join(unfinishedUpgrade(folder), "data");
  const [isThere, isMade] = await Promise.all(
    [data, made].map((path) =>
      lstat(path).then(
        () => true,
        () => false,
      ),
    ),
  );
  if (!isThere && isMade) await rename(made, data);
}

/** Left by a start or upgrade that was killed before it completed; a server may still be running on it. */
async function removeUnfinished(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.startsWith("unfinished")) continue;
    for (const data of ["data", "old"]) await stopLeftover(join(folder, name, data));
    // A program that was creating it may still be writing.
    await rm(join(folder, name), { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}
