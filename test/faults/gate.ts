import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { startProxy, type Proxy } from "../harness/proxy.ts";

/** A proxy to the database that can refuse connections or stop responding, like a failed server or network. */
export interface Gate extends AsyncDisposable, Pick<Proxy, "shut" | "hush" | "open"> {
  /** The database. Connections of the API go through the proxy, those of the owner do not. */
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
