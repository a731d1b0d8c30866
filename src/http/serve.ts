import type { RequestListener } from "node:http";
import type { Config } from "../config.ts";
import { loadCertificate } from "./certificate.ts";
import { listen, type Listening } from "./listen.ts";

const reloadEveryMs = 12 * 60 * 60 * 1000;

/**
 * Opens the configured address to the application. A certificate that was renewed, by us or by whoever provides
 * the files, comes into use without a restart.
 * @throws Error with a sentence for the user when the address or the certificate cannot be had.
 */
export async function serve(app: RequestListener, config: Config): Promise<Pick<Listening, "close">> {
  const { host, port } = config;
  const isProxy = await proxiesOf(config);
  const certificate = await loadCertificate(config);
  const listening = await listen(app, { host, port, ...certificate, isProxy }).catch(
    (error: NodeJS.ErrnoException) => {
      throw new Error(sentence(error, host, port), { cause: error });
    },
  );
  const reload = setInterval(() => {
    // Files that are just being replaced may not fit together; the next round finds them.
    void loadCertificate(config)
      .then(({ cert, key }) => listening.renew(cert, key))
      .catch(() => undefined);
  }, reloadEveryMs).unref();
  return {
    close: (graceMs) => {
      clearInterval(reload);
      return listening.close(graceMs);
    },
  };
}

/** Whether an address is a trusted proxy, as express itself understands the setting. */
async function proxiesOf({ trustProxy }: Config): Promise<(address: string) => boolean> {
  const { default: express } = await import("express");
  const app = express().set("trust proxy", trustProxy);
  const trusts = app.get("trust proxy fn") as (address: string, hop: number) => boolean;
  return (address) => trusts(address, 0);
}

function sentence(error: NodeJS.ErrnoException, host: string, port: number): string {
  const sentences: Record<string, string> = {
    EADDRINUSE: `Port ${port} on ${host} is taken by another program: stop it, or choose another with PORT.`,
    EACCES: `Port ${port} is not allowed for this user: choose one above 1023 with PORT.`,
    EADDRNOTAVAIL: `HOST ${host} is not an address of this machine.`,
    ENOTFOUND: `HOST ${host} is not a known name.`,
  };
  return sentences[error.code ?? ""] ?? `Cannot listen on ${host}:${port}: ${error.message}`;
}
