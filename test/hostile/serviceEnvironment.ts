/** The settings of the attacked service: production, without variables of the calling shell. */
export const serviceEnvironment = (dataDir: string): NodeJS.ProcessEnv => ({
  GRAPHILE_ENV: "production",
  NODE_ENV: "production",
  DATA_DIR: dataDir,
  DEMO: "1",
  // The attacks need none of the services that production requires.
  PAYMENTS: "sandbox",
  MAIL: "outbox",
  TEXT_MESSAGES: "outbox",
  TLS: "self-signed",
});
