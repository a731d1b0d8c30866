import { baseUrlAt, type Config } from "../base/config.ts";
import { freePort } from "../network/freePort.ts";

/** Settings with the port and the address for links decided, which everything that writes links needs early. */
export type ServiceConfig = Config & { readonly baseUrl: string };

/** Decides what PORT=0 and an absent BASE_URL leave open. */
export async function decideAddress(config: Config): Promise<ServiceConfig> {
  const port = config.port || (await freePort(config.host));
  return Object.freeze({ ...config, port, baseUrl: baseUrlAt(config, port) });
}

/** Where the process reaches itself, whoever else reaches it and how. */
export function ownAddress({ host, port }: Pick<Config, "host" | "port">): string {
  const self = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `https://${self.includes(":") ? `[${self}]` : self}:${port}`;
}
