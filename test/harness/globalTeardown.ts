import { lstat, realpath, rm } from "node:fs/promises";
import { join } from "node:path";

export default async function globalTeardown(): Promise<void> {
  const cluster = globalThis.platTestCluster;
  if (!cluster) return;
  await cluster.postgres.stop();
  await removeDataDir(cluster.folder);
}

/** Removes a data folder, and the cluster that it links to where root had to place it elsewhere. */
export async function removeDataDir(folder: string): Promise<void> {
  const cluster = join(folder, "postgres");
  if ((await lstat(cluster).catch(() => undefined))?.isSymbolicLink())
    await rm(await realpath(cluster), { recursive: true, force: true });
  await rm(folder, { recursive: true, force: true });
}
