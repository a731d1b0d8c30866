import { removeDataDir } from "../../src/database/dataDirs.ts";

export default async function globalTeardown(): Promise<void> {
  const { PLAT_TEST_DEMO: demo, PLAT_TEST_BROWSER: browser } = process.env;
  for (const folder of [demo, browser]) if (folder) await removeDataDir(folder);
  const cluster = globalThis.platTestCluster;
  if (!cluster) return;
  await cluster.postgres.stop();
  await removeDataDir(cluster.folder);
}
