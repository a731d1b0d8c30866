import type { Config, JwtKey } from "../config.ts";
import { keptSecret } from "../keptSecret.ts";

/** The keys that secrets are sealed with, in the same way. The first one seals. */
export async function loadSecretKeys(config: Config): Promise<readonly JwtKey[]> {
  return config.secretKeys ?? [{ kid: "local", secret: await keptSecret(config.dataDir, "secrets.key") }];
}

/** The keys of login tokens: those of the settings, or one of our own kept in the data folder. The first one signs. */
export async function loadJwtKeys(config: Config): Promise<readonly JwtKey[]> {
  return config.jwtKeys ?? [{ kid: "local", secret: await keptSecret(config.dataDir, "jwt.key") }];
}
