import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createServer, type AddressInfo, type Socket } from "node:net";
import type { Certificate } from "./certificate.ts";

export interface ListenOptions {
  app: RequestListener;
  certificate: () => Promise<Certificate>;
  host: string;
  /** 0 takes any free one. */
  port: number;
}

export interface Listener {
  port: number;
  /**
   * Takes no further connections, lets running requests finish, closes idle connections at once.
   * @param withinMs after which running requests are cut off.
   */
  close(withinMs: number): Promise<void>;
}

const tlsHandshake = 22;
const firstByteWithinMs = 10_000;
const reloadEveryMs = 12 * 60 * 60 * 1000;

/**
 * Serves the application with TLS. A caller who speaks plain HTTP on the same port reaches it too, so that the
 * application can answer in HTTP why that is refused, or accept it from a trusted proxy that ends TLS.
 * @throws Error with a sentence for the user when the address cannot be had.
 */
export async function listen({ app, certificate, host, port }: ListenOptions): Promise<Listener> {
  const encrypted = createHttpsServer(await certificate(), app);
  const plain = createHttpServer(app);
  // They get their connections from below and never listen, but only this event makes them keep a list of
  // connections, which closing them and the time-outs against slow senders work on.
  for (const half of [encrypted, plain]) half.emit("listening");
  const undecided = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    undecided.add(socket);
    socket.setTimeout(firstByteWithinMs, () => socket.destroy());
    socket.once("error", () => socket.destroy());
    socket.once("close", () => undecided.delete(socket));
    socket.once("data", (chunk: Buffer) => {
      undecided.delete(socket);
      socket.pause();
      socket.setTimeout(0);
      socket.unshift(chunk);
      (chunk[0] === tlsHandshake ? encrypted : plain).emit("connection", socket);
      process.nextTick(() => socket.resume());
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(refusal(error, host, port)));
    server.listen({ host, port }, resolve);
  });
  // A renewed certificate comes into use without a restart.
  const reload = setInterval(
    () =>
      void certificate().then(
        (pair) => encrypted.setSecureContext(pair),
        () => undefined,
      ),
    reloadEveryMs,
  ).unref();

  return {
    port: (server.address() as AddressInfo).port,
    close: async (withinMs) => {
      clearInterval(reload);
      const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
      for (const socket of undecided) socket.destroy();
      const deadline = Date.now() + withinMs;
      const sweep = setInterval(() => {
        for (const half of [encrypted, plain])
          if (Date.now() > deadline) half.closeAllConnections();
          else half.closeIdleConnections();
      }, 50);
      for (const half of [encrypted, plain]) half.closeIdleConnections();
      await closed;
      clearInterval(sweep);
      // Ends their timers.
      for (const half of [encrypted, plain]) half.close();
    },
  };
}

function refusal(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const reasons: Record<string, string> = {
    EADDRINUSE: `Port ${port} on ${host} is taken by another program: stop it, or choose another with PORT.`,
    EACCES: `Port ${port} is not allowed for this user: choose one above 1023 with PORT.`,
    EADDRNOTAVAIL: `HOST ${host} is not an address of this machine.`,
    ENOTFOUND: `HOST ${host} is not a known name.`,
  };
  return new Error(reasons[error.code ?? ""] ?? `Cannot listen on ${host}:${port}: ${error.message}`, {
    cause: error,
  });
}
