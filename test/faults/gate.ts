import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";

/** A way to the database that can be closed, as when the server or the network is down. */
export interface Gate extends AsyncDisposable {
  /** The database, whose API connections go through the gate; the owner's do not. */
  database: TestDatabase;
  /** Cuts every connection and refuses new ones. */
  shut(): void;
  open(): void;
}

export async function startGate(): Promise<Gate> {
  const database = await createTestDatabase();
  const url = new URL(database.authenticatorUrl);
  const target = { port: Number(url.port), host: url.hostname };
  const sockets = new Set<Socket>();
  let isOpen = true;
  const server = createServer((client) => {
    client.on("error", () => {});
    if (!isOpen) {
      client.destroy();
      return;
    }
    const upstream = connect(target);
    upstream.on("error", () => {});
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url.hostname = "127.0.0.1";
  url.port = String((server.address() as AddressInfo).port);
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    database: { ...database, authenticatorUrl: url.href },
    shut() {
      isOpen = false;
      cut();
    },
    open() {
      isOpen = true;
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      cut();
      await closed;
      await database.drop();
    },
  };
}
