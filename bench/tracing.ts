/**
 * Cost of tracing: two services on one database, one of which records a tenth of its traces, alternately answer the
 * same requests. Compares the CPU time of the processes, which depends little on other load.
 */
import { readFile } from "node:fs/promises";
import { Agent, request } from "node:https";
import { startCollector } from "../test/monitoring/collector.ts";
import { startService, temporaryFolder, type Service } from "../test/harness/service.ts";
import { withDatabase } from "./data/cluster.ts";
import { sized, smoke, unlessSmoke } from "./data/size.ts";

const body = JSON.stringify({
  query: "{ publicProjects(first: 20) { id title slug } units: publicProjects(first: 5) { id } }",
});

/** CPU time of a process so far, in ticks of 10 ms. */
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
  await using folder = await temporaryFolder();
  await withDatabase(async ({ ownerUrl }) => {
    const api = (env: NodeJS.ProcessEnv) =>
      startService({
        args: ["--api-only"],
        env: { DATA_DIR: folder.path, DATABASE_URL: ownerUrl, MONITORING: "off", ...env },
      });
    await using traced = await api({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_TRACES_SAMPLER_ARG: "0.1",
    });
    // A smoke test measures nothing, so one process is enough.
    await using other = smoke ? undefined : await api({});
    const without = { service: other ?? traced, ticks: 0 };
    const recording = { service: traced, ticks: 0 };
    const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
    for (let turn = unlessSmoke(-6, -1); turn < turns; turn += 1)
      for (const one of turn % 2 === 0 ? [without, recording] : [recording, without]) {
        const before = await ticksOf(one.service);
        for (let asked = 0; asked < perTurn; asked += 10)
          await Promise.all(Array.from({ length: 10 }, () => ask(one.service, agent)));
        // The first rounds are a warm-up.
        if (turn >= 0) one.ticks += (await ticksOf(one.service)) - before;
      }
    agent.destroy();
    const each = ({ ticks }: { ticks: number }) => ((ticks * 10_000) / (turns * perTurn)).toFixed(0);
    const more = (100 * (recording.ticks - without.ticks)) / (without.ticks || 1);
    console.log(
      `tracing: ${turns} × ${perTurn} requests to each, in turns; ${collector.spans.length} spans received`,
    );
    console.log(
      `  without ${each(without)} µs, a tenth recorded ${each(recording)} µs of processor time each: ${more.toFixed(1)} % more`,
    );
  });
}
