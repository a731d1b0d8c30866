/** The HTTPS server: its certificate, which is reloaded when it is renewed, and its time limits. */
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

/** Interval in milliseconds at which certificate files are re-read. */
const RELOAD_MS = 10_000;
/** Minimum interval in milliseconds between two log lines about a failure to read them. */
const TELL_MS = 60 * 60 * 1000;

export interface ServeOptions {
  log: Pick<Logger, "error" | "info">;
  /**
   * Called with the expiry of the current certificate (seconds since 1970) whenever it was read; with undefined if
   * that failed.
   */
  reloaded?: (expiresAt: number | undefined) => void;
  /** Processes that share the port. */
  part?: Pick<Part, "processes" | "ticketKeys"> | undefined;
  /** Interval of re-reading the certificate, in milliseconds. Default: ten seconds. */
  reloadEveryMs?: number;
}

const expiryOf = (cert: string): number => new Date(new X509Certificate(cert).validTo).getTime() / 1000;

/**
 * Binds the configured address briefly, so that a start that could not serve fails before it has migrated or built
 * anything.
 * @throws Error with a message for the user if the address cannot be used.
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
 * Serves the application on the configured address. A renewed certificate is used without a restart.
 * @throws Error with a message for the user if the address or the certificate cannot be used.
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
    // Files that are being replaced may not match yet; the next round retries.
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

/** Whether an address is a trusted proxy, by express' interpretation of the setting. */
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
