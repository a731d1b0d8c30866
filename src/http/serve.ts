import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { RequestListener } from "node:http";
import { createServer } from "node:net";
import type { Part } from "./apiProcesses.ts";
import type { Config } from "../base/config.ts";
import type { Logger } from "../base/log.ts";
import { type Certificate, loadCertificate } from "./tlsCertificate.ts";
import { connectionLimits } from "./connectionLimits.ts";
import { listen, type Listening } from "./listen.ts";

/** How often the files of the certificate are read again. */
const RELOAD_MS = 10_000;
/** How often it is told that they cannot be read. */
const TELL_MS = 60 * 60 * 1000;

export interface ServeOptions {
  log: Pick<Logger, "error" | "info">;
  /** Told when the certificate that is used expires (seconds since 1970), whenever it was read; undefined where that failed. */
  reloaded?: (expiresAt: number | undefined) => void;
  /** Where other processes serve the same port. */
  part?: Pick<Part, "processes" | "ticketKeys"> | undefined;
  /** Milliseconds after which the certificate is read again; ten seconds unless given. */
  reloadEveryMs?: number;
}

const expiryOf = (cert: string): number => new Date(new X509Certificate(cert).validTo).getTime() / 1000;

/**
 * Takes the configured address for a moment, so that a start that could not serve is refused before it has migrated or built anything.
 * @throws Error with a sentence for the user when the address cannot be had.
 */
export async function requireAddress({ host, port }: Pick<Config, "host" | "port">): Promise<void> {
  const server = createServer((socket) => void socket.destroy());
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (error) {
    throw new Error(sentence(error as NodeJS.ErrnoException, host, port), { cause: error });
  }
  server.close();
  await once(server, "close");
}

/**
 * Opens the configured address to the application. A certificate that was renewed, by us or by whoever provides
 * the files, comes into use without a restart.
 * @throws Error with a sentence for the user when the address or the certificate cannot be had.
 */
export async function serve(
  app: RequestListener,
  config: Config,
  { log, reloaded = () => {}, part, reloadEveryMs = RELOAD_MS }: ServeOptions,
): Promise<Pick<Listening, "close" | "drain">> {
  const { host, port } = config;
  const isProxy = await proxiesOf(config);
  const certificate = await loadCertificate(config);
  const listening = await listen(app, {
    host,
    port,
    ...certificate,
    isProxy,
    limits: connectionLimits(undefined, part?.processes, config.streamLimits.total),
    ticketKeys: part && Buffer.from(part.ticketKeys),
  }).catch((error: NodeJS.ErrnoException) => {
    throw new Error(sentence(error, host, port), { cause: error });
  });
  let used = certificate;
  let toldAt = -Infinity;
  const renew = (found: Certificate) => {
    const expiresAt = expiryOf(found.cert);
    if (found.cert !== used.cert || found.key !== used.key) {
      listening.renew(found.cert, found.key);
      used = found;
      log.info(
        { event: "tls.reloaded", expires: new Date(expiresAt * 1000).toISOString() },
        "The certificate was renewed.",
      );
    }
    reloaded(expiresAt);
    toldAt = -Infinity;
  };
  reloaded(expiryOf(certificate.cert));
  const reload = setInterval(() => {
    // Files that are just being replaced may not fit together; the next round finds them.
    loadCertificate(config)
      .then(renew)
      .catch((error: unknown) => {
        reloaded(undefined);
        if (performance.now() - toldAt < TELL_MS) return;
        toldAt = performance.now();
        log.error(
          { event: "tls.reload_failed", err: error },
          "Reloading the certificate failed; the previous one stays in use.",
        );
      });
  }, reloadEveryMs).unref();
  return {
    drain: listening.drain,
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
