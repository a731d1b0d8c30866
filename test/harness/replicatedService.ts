/** Starts the service with a primary and two standbys that answer its queries. */
import { freePort } from "../../src/network/freePort.ts";
import { signIn } from "./load.ts";
import { type Service, startService, temporaryFolder } from "./service.ts";
import { type Replication, startReplication } from "./standbys.ts";

export interface ReplicatedService extends AsyncDisposable {
  readonly servers: Replication;
  readonly service: Service;
  readonly viewer: Awaited<ReturnType<typeof signIn>>;
  /** Number of statements of queries that replicas and the primary answered. */
  answered(): Promise<{ replica: number; primary: number }>;
}

export async function startReplicatedService(env: NodeJS.ProcessEnv = {}): Promise<ReplicatedService> {
  const stack = new AsyncDisposableStack();
  try {
    const servers = stack.use(await startReplication(2));
    const data = stack.use(await temporaryFolder());
    const monitoring = `127.0.0.1:${await freePort()}`;
    const service = stack.use(
      await startService({
        env: {
          DATABASE_URL: servers.primary.url,
          READ_DATABASE_URLS: servers.standbys.map(({ url }) => url).join(","),
          DATA_DIR: data.path,
          MONITORING: monitoring,
          ...env,
        },
      }),
    );
    const viewer = await signIn(service.baseUrl);
    return {
      servers,
      service,
      viewer,
      answered: async () => {
        const text = await (await fetch(`http://${monitoring}/metrics`)).text();
        const of = (server: string) =>
          Number(new RegExp(`^plat_reads_total\\{server="${server}"\\} (\\d+)`, "m").exec(text)?.[1] ?? 0);
        return { replica: of("replica"), primary: of("primary") };
      },
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}
