/** The settings of the attacked service: production, without variables of the calling shell. */
export const serviceEnvironment = (dataDir: string): NodeJS.ProcessEnv => ({
  GRAPHILE_ENV: "production",
  NODE_ENV: "production",
  DATA_DIR: dataDir,
  DEMO: "1",
  // Of what real use takes, the attacks need nothing.
  PAYMENTS: "sandbox",
  MAIL: "outbox",
  TEXT_MESSAGES: "outbox",
  TLS: "self-signed",
});
