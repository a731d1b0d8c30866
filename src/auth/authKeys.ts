import type { Config, JwtKey } from "../base/config.ts";
import { onConnection } from "../database/onConnection.ts";
import { loadOrCreateSecret } from "../secrets/loadOrCreateSecret.ts";
import { createSeal, type Seal, type SealOptions, type SealingKey } from "../secrets/seal.ts";

/**
 * Keys that seal secrets: those of the settings, or one kept in the data folder. The first one seals. Secrets that
 * are not bound to a row are only opened for columns that may have some according to the database.
 */
export async function loadSeal(
  config: Pick<Config, "secretKeys" | "dataDir" | "opensUnboundSecrets">,
  authenticatorUrl: string,
  log: SealOptions["log"],
): Promise<Seal> {
  const keys: readonly SealingKey[] = config.secretKeys ?? [
    { kid: "local", secret: await loadOrCreateSecret(config.dataDir, "secrets.key") },
  ];
  const unbound = new Set<string>();
  if (config.opensUnboundSecrets) {
    const { rows } = await onConnection(authenticatorUrl, (client) =>
      client.query<{ name: string }>("select app_private.unbound_columns() as name"),
    );
    for (const { name } of rows) unbound.add(name);
  }
  return createSeal(keys, { unbound, ...(log && { log }) });
}

/** Keys of login tokens: those of the settings, or one kept in the data folder. The first one signs. */
export async function loadJwtKeys(config: Config): Promise<readonly JwtKey[]> {
  return config.jwtKeys ?? [{ kid: "local", secret: await loadOrCreateSecret(config.dataDir, "jwt.key") }];
}
