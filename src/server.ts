/** Starts a process of the service: everything that `npm start` does, in reading order. */
import { setFlagsFromString } from "node:v8";
import { decideAddress } from "./http/address.ts";
import { servePart, requestPart } from "./http/apiProcesses.ts";
import { openMonitoring } from "./http/monitoring.ts";
import { ConfigError, loadConfig } from "./base/config.ts";
import { exitCodes } from "./base/exitCodes.ts";
import { prepareDataDir } from "./database/dataDir.ts";
import { requireDriver } from "./database/driver.ts";
import { demoUser } from "./demo/index.ts";
import { openBackground } from "./service/background.ts";
import { announce } from "./service/banner.ts";
import { prepareData, requireUsable, startDatabase, watchDatabase } from "./service/data.ts";
import { openProviders } from "./service/providers.ts";
import { beginStart, type Start } from "./service/start.ts";
import { type Follow, startApi, startParts } from "./service/startApi.ts";
import { startBackground } from "./startBackground.ts";

/**
 * Without a limit, the heap grows to several times the size of live data before it is collected: a minute of many
 * plans or large responses would take half a gigabyte more, and keep it. Not set during the start, when nearly all of
 * the heap is live: repeated collections would take a tenth of the start.
 */
const keepHeapSmall = () => setFlagsFromString("--heap-growing-percent=30");

/**
 * The composition root, in reading order. Parts stop in reverse order of `shutdown.add`.
 * @param follow if given, the migration that is being written is applied as well, and file changes are watched
 * @throws ConfigError before anything was started
 */
export async function runService(argv: readonly string[], follow?: Follow): Promise<void> {
  const part = await requestPart();
  const config = part?.config ?? (await decideAddress(loadConfig(process.env, argv)));
  const start = await beginStart(config, part);
  try {
    await startAll(start, follow);
  } catch (error) {
    start.log.debug({ event: "service.start_failed", err: error }, "Startup failed; exiting.");
    console.error((error as Error).message);
    await start.shutdown.begin("the start failed", exitCodes.failed);
  }
}

async function startAll(start: Start, follow: Follow | undefined): Promise<void> {
  const { config, part, log, shutdown, readiness, metrics } = start;
  requireDriver();
  prepareDataDir(config.dataDir);
  const database = await startDatabase(start);
  let monitoring: Awaited<ReturnType<typeof openMonitoring>>;
  // Reports until the end that the process is alive, and not ready.
  shutdown.add("monitoring", async () => monitoring?.close());

  const data = await prepareData(start, database, follow !== undefined);
  if (config.mode === "migrate") return await shutdown.begin("migrated", 0);
  await requireUsable(start, database);
  watchDatabase(start, database);

  const runsJobs = config.mode === "all" || config.mode === "worker";
  const background = runsJobs ? await openBackground(database, config, log) : undefined;
  if (background) shutdown.add("background connections", background.end);
  const providers = await openProviders(start, data, background);
  if (background) await startBackground(start, { data, background, providers });
  // Stopped before the users of the pool, so that their leases are released.
  shutdown.add("computations", () => providers.compute.stop());

  const isServed = config.mode !== "worker";
  if (isServed && config.apiProcesses > 1 && !follow) await startParts(start, data, import.meta.filename);
  else if (isServed)
    await startApi(start, { data, providers, listenConnection: background?.listenConnection }, follow);

  monitoring = await openMonitoring(config, { metrics, readiness, log });
  shutdown.add("readiness", () => readiness.stop());
  if (!follow) keepHeapSmall();
  if (part) servePart(metrics.values);
  else announce(config, log, data.demo === "absent" ? undefined : demoUser);
}

if (import.meta.main)
  try {
    await runService(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
