import { removeDataDir } from "../../src/database/dataDirs.ts";

export default async function globalTeardown(): Promise<void> {
  const cluster = globalThis.platTestCluster;
  if (!cluster) return;
  await cluster.postgres.stop();
  await removeDataDir(cluster.folder);
}
