import { baseUrlAt, type Config } from "../base/config.ts";
import { freePort } from "../network/freePort.ts";

/** Settings with port and base URL resolved, which anything that creates links needs early. */
export type ServiceConfig = Config & { readonly baseUrl: string };

/** Resolves PORT=0 and a missing BASE_URL. */
export async function decideAddress(config: Config): Promise<ServiceConfig> {
  const port = config.port || (await freePort(config.host));
  return Object.freeze({ ...config, port, baseUrl: baseUrlAt(config, port) });
}

/** Address by which the process reaches itself. */
export function ownAddress({ host, port }: Pick<Config, "host" | "port">): string {
  const self = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `https://${self.includes(":") ? `[${self}]` : self}:${port}`;
}
