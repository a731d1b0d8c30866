/** A TLS connection of a client that encrypts what it sends byte by byte, and sends all records at once. */
import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { Duplex } from "node:stream";
import { connect } from "node:tls";
import { promisify } from "node:util";

/** What TLS writes to it is sent, or kept while it is held. */
class Path extends Duplex {
  readonly tcp;
  /** Encrypted records. */
  kept: Buffer[] | undefined;

  constructor(options: { host: string; port: number; localAddress?: string }) {
    super();
    this.tcp = connectTcp(options);
    this.tcp.on("data", (part: Buffer) => this.push(part));
    this.tcp.on("error", () => {}).on("close", () => this.destroy());
    this.on("error", () => {});
  }

  override _read(): void {}

  override _write(part: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    if (!this.kept) return void this.tcp.write(part, done);
    this.kept.push(part);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.tcp.destroy();
    done(error);
  }
}

export interface RecordSender extends Disposable {
  /** The answer so far. */
  text(): string;
  /** Resolves once the connection is closed. */
  closed: Promise<void>;
  isClosed(): boolean;
  /** Encrypts a text, each so many bytes as one record. */
  encrypt(text: string, length: number): Promise<void>;
  /** Sends what was encrypted. */
  send(): void;
}

/** Opens a connection. @throws AbortError */
export async function openRecordSender(
  address: { host: string; port: number; localAddress?: string },
  signal?: AbortSignal,
): Promise<RecordSender> {
  const path = new Path(address);
  const socket = connect({ socket: path, rejectUnauthorized: false });
  socket.on("error", () => {});
  const leave = () => path.destroy();
  signal?.addEventListener("abort", leave, { once: true });
  let text = "";
  let isClosed = false;
  const closed = Promise.withResolvers<void>();
  socket.on("data", (part: Buffer) => (text += part.toString("latin1")));
  path.once("close", () => {
    isClosed = true;
    closed.resolve();
    signal?.removeEventListener("abort", leave);
  });
  await once(socket, "secureConnect", { ...(signal && { signal }) });
  const write = promisify((part: string, done: (error?: Error | null) => void) => socket.write(part, done));
  return {
    text: () => text,
    closed: closed.promise,
    isClosed: () => isClosed,
    async encrypt(whole, length) {
      path.kept ??= [];
      // One after the other: Node makes one record of those that wait.
      for (let at = 0; at < whole.length; at += length) {
        if (path.destroyed) return;
        await write(whole.slice(at, at + length));
      }
    },
    send() {
      const records = Buffer.concat(path.kept ?? []);
      path.kept = undefined;
      path.tcp.write(records);
    },
    [Symbol.dispose]: leave,
  };
}
