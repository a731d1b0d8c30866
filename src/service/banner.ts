import type { ServiceConfig } from "../http/address.ts";
import type { Logger } from "../base/log.ts";

/**
 * Reports that the service is up: one log line for machines, and next steps for people. The latter go to stderr, so that the log on stdout
 * remains one JSON object per line.
 * @param demoUser a user of the demo organization, if it is loaded.
 */
export function announce(
  config: ServiceConfig,
  log: Logger,
  demoUser?: { email: string; password: string },
): void {
  log.info(
    { event: "service.ready", address: config.baseUrl, mode: config.mode, pid: process.pid },
    "Plat is ready.",
  );
  if (config.mode === "all") console.error(banner(config, demoUser));
}

/** The banner: the address, the demo user, and commands that work when pasted. */
export function banner(
  config: Pick<
    ServiceConfig,
    "baseUrl" | "explorer" | "production" | "smtpUrl" | "stripe" | "tls" | "textMessages"
  >,
  demoUser?: { email: string; password: string },
): string {
  const url = `${config.baseUrl}/graphql`;
  // A certificate created on first start is not trusted by anything else.
  const curl = config.tls ? "curl -s" : "curl -sk";
  const ask = (query: string, header = "") =>
    `${curl} ${url} ${header}-H 'Content-Type: application/json' -d '${JSON.stringify({ query })}'`;
  const lines = [`Plat is ready at ${url}`];
  const pretends = [
    ...(config.stripe ? [] : ["payments go to a sandbox where no money moves"]),
    ...(config.smtpUrl ? [] : ["mail is written to files"]),
    ...(config.textMessages === "outbox" ? ["text messages are written to files"] : []),
    ...(config.tls ? [] : ["nobody has signed the certificate"]),
  ];
  if (!config.production && pretends.length > 0)
    lines.push(`This is a trial: ${pretends.join(", ")}. For real use: NODE_ENV=production.`);
  if (config.explorer) lines.push(`Portal:    ${config.baseUrl}/`);
  if (demoUser) lines.push(`Demo user: ${demoUser.email}, password ${demoUser.password}`);
  lines.push("", "Ask for the public projects:", `  ${ask("{ publicProjects { title status } }")}`);
  if (demoUser) {
    const login = `mutation { login(input: {username: "${demoUser.email}", password: "${demoUser.password}"}) { token } }`;
    lines.push(
      "",
      "Get a token, and use it:",
      `  TOKEN=$(${ask(login)} | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')`,
      `  ${ask("{ leads(first: 5) { name status } }", '-H "Authorization: Bearer $TOKEN" ')}`,
    );
  }
  lines.push("", "Ctrl-C stops it.");
  return ["", ...lines.map((line) => (line ? `  ${line}` : line)), ""].join("\n");
}
