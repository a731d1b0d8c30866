/**
 * GET /metrics, /healthz and /readyz for operators, on a separate address: metrics reveal how the service is used, so
 * they are not public. Plain HTTP, since the default address is on the loopback interface.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Config } from "../base/config.ts";
import type { Logger } from "../base/log.ts";
import type { Readiness } from "../monitoring/readiness.ts";
import type { Metrics } from "./metrics.ts";

export interface MonitoringOptions {
  host: string;
  /** 0 for a free port. */
  port: number;
  metrics: Metrics;
  readiness: Readiness;
}

type Page = () => Promise<{ status: number; contentType: string; text: string }>;

const json = (status: number, value: unknown) => ({
  status,
  contentType: "application/json; charset=utf-8",
  text: JSON.stringify(value),
});

/** @throws NodeJS.ErrnoException if the address cannot be used */
export async function startMonitoring({ host, port, metrics, readiness }: MonitoringOptions) {
  const pages: Record<string, Page> = {
    "/metrics": async () => ({ status: 200, ...(await metrics.render()) }),
    "/healthz": async () => json(200, { status: "alive" }),
    "/readyz": async () => {
      const { ready, ...report } = await readiness.report();
      return json(ready ? 200 : 503, { status: ready ? "ready" : "unavailable", ...report });
    },
  };
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const path = (request.url ?? "").split("?")[0]!;
    const page = Object.hasOwn(pages, path) ? pages[path] : undefined;
    const isRead = request.method === "GET" || request.method === "HEAD";
    const { status, contentType, text } =
      page && isRead ? await page() : json(page ? 405 : 404, { status: page ? "GET only" : "not found" });
    response.writeHead(status, {
      "Content-Type": contentType,
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
      ...(status === 405 && { Allow: "GET, HEAD" }),
    });
    response.end(request.method === "HEAD" ? undefined : text);
  };
  const server = createServer(
    {
      headersTimeout: 5_000,
      requestTimeout: 5_000,
      keepAliveTimeout: 5_000,
      connectionsCheckingInterval: 1_000,
    },
    (request, response) => void answer(request, response).catch(() => response.destroy()),
  );
  server.maxConnections = 64;
  server.timeout = 30_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/**
 * Listens on the configured address. If the default address is taken, for example by another process, this is logged
 * and the service continues.
 * @returns undefined if there is none
 * @throws Error with a message for the user if an explicitly configured address cannot be used
 */
export async function openMonitoring(
  { monitoring, port, mode }: Pick<Config, "monitoring" | "port" | "mode">,
  given: { metrics: Metrics; readiness: Readiness; log: Logger },
): Promise<{ close(): Promise<void> } | undefined> {
  if (monitoring === "off") return undefined;
  const beside = Math.min(65_535, port + (mode === "worker" ? 2 : 1));
  const { host, port: wanted } = monitoring ?? { host: "127.0.0.1", port: beside };
  const { log } = given;
  try {
    const opened = await startMonitoring({ host, port: wanted, ...given });
    log.info({ event: "monitoring.open", host, port: opened.port }, "Metrics and probes are served.");
    return opened;
  } catch (error) {
    const { message } = error as Error;
    if (monitoring)
      throw new Error(`MONITORING: cannot listen on ${host}:${wanted}: ${message}`, { cause: error });
    log.warn(
      { event: "monitoring.taken", host, port: wanted, err: error },
      "The address for metrics and probes is in use; they are not served. Choose another one with MONITORING.",
    );
    return undefined;
  }
}
