/** Two API processes behind a load balancer that polls /readyz, and that are restarted under load. */
import { Agent, request } from "node:https";
import { join } from "node:path";
// oxlint-disable-next-line no-restricted-imports -- how often a balancer asks
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "../../src/network/freePort.ts";
import { startService, temporaryFolder, type Service } from "../harness/service.ts";
import { until } from "../harness/until.ts";

export interface Rolling {
  /** Connection string of the owner of a migrated database. */
  databaseUrl: string;
  /** Milliseconds between health checks. */
  askEveryMs: number;
  /** STOP_DELAY, in seconds. */
  stopDelay: number;
  /** Minimum number of requests, and number of clients. */
  requests: number;
  callers: number;
  /** Milliseconds that each client pauses between two requests. Default: none. */
  restMs?: number;
  /** The processes to restart, one after the other. */
  restarted: number[];
}

/** Number of requests by status or connection error, during the restarts. */
export async function rollingRestart(options: Rolling): Promise<Map<string, number>> {
  await using data = await temporaryFolder();
  const ports = [await freePort(), await freePort()];
  const api = (n: number) =>
    startService({
      env: {
        DATABASE_URL: options.databaseUrl,
        DATA_DIR: join(data.path, String(n)),
        MONITORING: `127.0.0.1:${ports[n]}`,
        SECRET_KEYS: `a:${"k".repeat(32)}`,
        JWT_KEYS: `a:${"k".repeat(32)}`,
        STOP_DELAY: String(options.stopDelay),
        LOG_LEVEL: "info",
      },
      args: ["--api-only"],
    });
  const services: Service[] = await Promise.all([api(0), api(1)]);
  const outcomes = new Map<string, number>();
  const ready = [true, true];
  // A new process serves its health checks before its own port is known here.
  const isKnown = [true, true];
  const state = { on: true };
  const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
  let sent = 0;
  const ask = () =>
    new Promise<string>((settle) => {
      const first = sent % 2;
      const chosen = ready[first] && isKnown[first] ? first : 1 - first;
      sent += 1;
      request(
        `${services[chosen]!.baseUrl}/graphql`,
        { method: "POST", agent, headers: { "content-type": "application/json" } },
        (response) => response.resume().on("end", () => settle(String(response.statusCode))),
      )
        .once("error", ({ message }) => settle(message))
        .end('{"query":"{ publicProjects { id } }"}');
    });
  const looking = services.map(async (_, n) => {
    for (; state.on; await pause(options.askEveryMs))
      ready[n] = await fetch(`http://127.0.0.1:${ports[n]}/readyz`).then(
        ({ status }) => status === 200,
        () => false,
      );
  });
  const calling = Array.from({ length: options.callers }, async () => {
    while (state.on) {
      const outcome = await ask();
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      if (options.restMs) await pause(options.restMs);
    }
  });
  const more = async (amount: number) => {
    const before = sent;
    await until(
      () => sent,
      (now) => now >= before + amount,
      { withinMs: 300_000 },
    );
  };
  try {
    const share = options.requests / options.restarted.length / 2;
    for (const n of options.restarted) {
      await more(share);
      const { code } = await services[n]!.stop();
      if (code !== 0) outcomes.set(`exit ${code}`, 1);
      isKnown[n] = false;
      await more(share);
      services[n] = await api(n);
      isKnown[n] = true;
      await until(() => ready[n]);
    }
  } finally {
    state.on = false;
    await Promise.all([...looking, ...calling]);
    agent.destroy();
    await Promise.all(services.map((service) => service.stop()));
  }
  return outcomes;
}
