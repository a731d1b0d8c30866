import { randomUUID } from "node:crypto";
import { chown, lstat, mkdir, readdir, realpath, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { sharedFolder } from "./binaries.ts";
import { stopLeftover } from "./postmaster.ts";
import { canReach, type RunAs } from "./systemUser.ts";

/**
 * The folder that holds the cluster: `DATA_DIR/postgres`. Where the database's user cannot pass to it (root
 * started us in a folder of mode 0700), it is a symbolic link to a place of its own below /var/lib/plat, so
 * that no mode of a folder we did not make is ever changed.
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
  // For whoever finds the folder and wonders whose it is.
  await writeFile(
    join(folder, "README"),
    `PostgreSQL cluster of the Plat service with DATA_DIR=${dataDir}\n`,
  );
  await symlink(folder, shownAs);
}

/** Where an upgrade makes the new cluster, in a folder `data`, from a copy of the former one, in a folder `old`. */
export const unfinishedUpgrade = (folder: string): string => join(folder, "unfinished-upgrade");

/**
 * An upgrade moves the old cluster away once the new one is whole, and nothing else leaves a folder without a cluster beside an upgrade: one that was
 * killed in that moment is completed. Otherwise the new cluster would be removed, and an empty one be made.
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

/** What a start or an upgrade left that was killed before it was through; a server may still run on it. */
async function removeUnfinished(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.startsWith("unfinished")) continue;
    for (const data of ["data", "old"]) await stopLeftover(join(folder, name, data));
    // A program that was making it may write on for a moment.
    await rm(join(folder, name), { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}
