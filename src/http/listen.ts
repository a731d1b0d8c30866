import { randomUUID } from "node:crypto";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer as createNetServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { CodedError, errorBody } from "../errors.ts";

export interface ListenOptions {
  /** 0 takes a free port. */
  readonly port: number;
  readonly host: string;
  /** PEM. */
  readonly cert: string;
  readonly key: string;
}

export interface Listening {
  readonly port: number;
  /** Takes a renewed certificate for connections from now on. */
  renew(cert: string, key: string): void;
  /** Stops accepting, lets running requests end, and cuts what is left after `graceMs` milliseconds. */
  close(graceMs?: number): Promise<void>;
}

/** The first byte of a TLS connection: a record of type handshake. No HTTP method begins with it. */
const TLS_HANDSHAKE = 0x16;
const FIRST_BYTE_MS = 10_000;
const timeouts = { headersTimeout: 15_000, requestTimeout: 120_000, keepAliveTimeout: 65_000 };

const parserErrors: Record<string, { status: string; sentence: string }> = {
  HPE_HEADER_OVERFLOW: {
    status: "431 Request Header Fields Too Large",
    sentence: "The headers are too large.",
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: "408 Request Timeout",
    sentence: "The request did not arrive in time.",
  },
};

/** What is no HTTP never reaches the application, and is answered in the same form. */
function onClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === "ECONNRESET") return void socket.destroy();
  const { status, sentence } = parserErrors[error.code ?? ""] ?? {
    status: "400 Bad Request",
    sentence: "This is not a valid HTTP request.",
  };
  const body = JSON.stringify(errorBody(new CodedError("BAD_USER_INPUT", sentence), randomUUID()));
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

/**
 * Serves the application on one port over HTTPS. Plain HTTP on the same port reaches the application too, which refuses
 * it in a clear sentence, or serves it where a trusted proxy vouches for it: each connection goes to the TLS server or
 * to the plain one by its first byte.
 */
export async function listen(app: RequestListener, options: ListenOptions): Promise<Listening> {
  const secure = createHttpsServer(
    { cert: options.cert, key: options.key, minVersion: "TLSv1.2", ...timeouts },
    app,
  );
  const plain = createHttpServer(timeouts, app);
  const sockets = new Set<Socket>();
  const silent = new Set<Socket>();
  for (const server of [secure, plain]) {
    server.on("clientError", onClientError);
    // Neither listens by itself, and it is this event that starts the clock of the two time-outs above.
    server.emit("listening");
  }
  secure.on("tlsClientError", (_error, socket) => socket.destroy());

  const front = createNetServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    silent.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      silent.delete(socket);
    });
    const cut = () => socket.destroy();
    socket.on("error", cut);
    socket.setTimeout(FIRST_BYTE_MS, cut);
    socket.once("readable", () => {
      const first: Buffer | null = socket.read(1);
      silent.delete(socket);
      if (!first) return cut();
      socket.setTimeout(0);
      socket.off("timeout", cut);
      socket.unshift(first);
      (first[0] === TLS_HANDSHAKE ? secure : plain).emit("connection", socket);
    });
  });
  await new Promise<void>((resolve, reject) => {
    front.once("error", reject);
    front.listen(options.port, options.host, resolve);
  });

  return {
    port: (front.address() as AddressInfo).port,
    renew: (cert, key) => secure.setSecureContext({ cert, key }),
    async close(graceMs = 10_000) {
      const closed = new Promise((resolve) => front.close(resolve));
      const cut = setTimeout(() => sockets.forEach((socket) => socket.destroy()), graceMs);
      for (const socket of silent) socket.destroy();
      // A connection that is kept alive becomes idle some time after its last answer, and nothing tells when.
      const closeIdle = setInterval(() => {
        secure.closeIdleConnections();
        plain.closeIdleConnections();
      }, 50);
      secure.close();
      plain.close();
      await closed;
      clearTimeout(cut);
      clearInterval(closeIdle);
    },
  };
}
