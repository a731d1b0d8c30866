/** Operations on entire data folders, while no database runs on them. */
import { execFile } from "node:child_process";
import { cp, lstat, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { clusterFolder } from "./clusterFolder.ts";
import { databaseUser } from "./systemUser.ts";

/** Copies the cluster and the password of its owner into an empty data folder. */
export async function copyDataDir(from: string, to: string): Promise<void> {
  const { folder } = await clusterFolder(to, databaseUser(undefined));
  const data = join(await realpath(join(from, "postgres")), "data");
  // Preserves owners, modes and times.
  await promisify(execFile)("cp", ["-a", data, join(folder, "data")]);
  await cp(join(from, "postgres.password"), join(to, "postgres.password"));
}

/** Removes a data folder, and the cluster that it links to if root placed it elsewhere. */
export async function removeDataDir(folder: string): Promise<void> {
  const cluster = join(folder, "postgres");
  if ((await lstat(cluster).catch(() => undefined))?.isSymbolicLink())
    await rm(await realpath(cluster), { recursive: true, force: true });
  await rm(folder, { recursive: true, force: true });
}
