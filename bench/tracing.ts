/**
 * What traces cost: two services on one database, one of them recording a tenth of its traces, are asked the same in turns. Compared is the
 * processor time that each process took, which other work on the machine changes little.
 */
import { readFile } from "node:fs/promises";
import { Agent, request } from "node:https";
import { startEmbeddedPostgres } from "../src/database/embedded.ts";
import { startCollector } from "../test/monitoring/collector.ts";
import { migratedFolder, startService, type Service } from "../test/harness/service.ts";
import { migratedDataDir } from "../src/cli/migratedDataDir.ts";
import { sized, unlessSmoke } from "./data/size.ts";

const body = JSON.stringify({
  query: "{ publicProjects(first: 20) { id title slug } units: publicProjects(first: 5) { id } }",
});

/** Processor time of a process so far, in ticks of 10 ms. */
async function ticksOf({ pid }: Service): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1]!.split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

function ask({ baseUrl }: Service, agent: Agent): Promise<void> {
  return new Promise((done, fail) => {
    const headers = { "content-type": "application/json" };
    request(`${baseUrl}/graphql`, { method: "POST", agent, headers }, (response) => {
      response.resume().on("end", done);
    })
      .on("error", fail)
      .end(body);
  });
}

export default async function tracing(): Promise<void> {
  const perTurn = sized(600, 20);
  const turns = unlessSmoke(16, 2);
  await using collector = await startCollector();
  process.env.PLAT_TEST_MIGRATED ??= await migratedDataDir();
  await using folder = await migratedFolder();
  const postgres = await startEmbeddedPostgres({ dataDir: folder.path, fast: true });
  const api = (env: NodeJS.ProcessEnv) =>
    startService({
      args: ["--api-only"],
      env: {
        DATA_DIR: folder.path,
        DATABASE_URL: postgres.connectionString,
        MONITORING: "off",
        ...env,
      },
    });
  try {
    await using without = await api({});
    await using traced = await api({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_TRACES_SAMPLER_ARG: "0.1",
    });
    const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
    const used = new Map([
      [without, [] as number[]],
      [traced, []],
    ]);
    for (let turn = unlessSmoke(-6, -1); turn < turns; turn += 1)
      for (const service of turn % 2 === 0 ? [without, traced] : [traced, without]) {
        const before = await ticksOf(service);
        for (let asked = 0; asked < perTurn; asked += 10)
          await Promise.all(Array.from({ length: 10 }, () => ask(service, agent)));
        // The first turns warm up.
        if (turn >= 0) used.get(service)!.push((await ticksOf(service)) - before);
      }
    agent.destroy();
    const [plain, costs] = [...used.values()].map((ticks) => ticks.reduce((sum, tick) => sum + tick, 0));
    console.log(
      `tracing: ${turns} × ${perTurn} requests to each, in turns; ${collector.spans.length} spans received`,
    );
    console.log(
      `  without ${((plain! * 10_000) / (turns * perTurn)).toFixed(0)} µs, a tenth recorded ${((costs! * 10_000) / (turns * perTurn)).toFixed(0)} µs of processor time each: ${((100 * (costs! - plain!)) / plain!).toFixed(1)} % more`,
    );
  } finally {
    await postgres.stop();
  }
}
