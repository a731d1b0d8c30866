import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { startProxy, type Proxy } from "../harness/proxy.ts";

/** A way to the database that can be closed or silent, as when the server or the network is down. */
export interface Gate extends AsyncDisposable, Pick<Proxy, "shut" | "hush" | "open"> {
  /** The database, whose API connections go through the gate; the owner's do not. */
  database: TestDatabase;
}

export async function startGate(): Promise<Gate> {
  const database = await createTestDatabase();
  const { authenticatorUrl, workerUrl } = database;
  const proxy = await startProxy(Number(new URL(authenticatorUrl).port));
  return {
    database: {
      ...database,
      authenticatorUrl: proxy.through(authenticatorUrl),
      workerUrl: proxy.through(workerUrl),
    },
    shut: proxy.shut,
    hush: proxy.hush,
    open: proxy.open,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await database.drop();
    },
  };
}
