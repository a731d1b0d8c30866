import type { ServiceConfig } from "./address.ts";
import type { Logger } from "./log.ts";

/**
 * Says that the service is up: a line of the log for machines, and in a terminal also what to do next.
 * @param hints lines that others contribute, such as the demo user.
 */
export function announce(config: ServiceConfig, log: Logger, hints: string[] = []): void {
  log.info({ address: config.baseUrl, mode: config.mode, pid: process.pid }, "Plat is ready.");
  if (!process.stdout.isTTY || config.mode !== "all") return;
  const trust = config.tls ? "" : ` --cacert ${config.dataDir}/certificate.pem`;
  console.log(
    [
      "",
      `  Plat is ready at ${config.baseUrl}/graphql`,
      ...(config.explorer ? [`  Explorer:  ${config.baseUrl}/`] : []),
      ...hints.map((hint) => `  ${hint}`),
      "",
      `  curl${trust} -H 'Content-Type: application/json' \\`,
      `    -d '{"query":"{ __typename }"}' ${config.baseUrl}/graphql`,
      "",
      "  Ctrl-C stops it.",
      "",
    ].join("\n"),
  );
}
