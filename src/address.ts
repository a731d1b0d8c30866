import { baseUrlAt, type Config } from "./config.ts";
import { freePort } from "./freePort.ts";

/** Settings with the port and the address for links decided, which everything that writes links needs early. */
export type ServiceConfig = Config & { readonly baseUrl: string };

/** Decides what PORT=0 and an absent BASE_URL leave open. */
export async function decideAddress(config: Config): Promise<ServiceConfig> {
  const port = config.port || (await freePort(config.host));
  return Object.freeze({ ...config, port, baseUrl: baseUrlAt(config, port) });
}
