/** The API in several processes on one port: shared state, and the end of one process. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { freePort } from "../../src/network/freePort.ts";
import {
  untilEnded,
  isRunning,
  migratedFolder,
  runToExit,
  startService,
  type Service,
} from "../harness/service.ts";
import { until } from "../harness/until.ts";

let folder: Awaited<ReturnType<typeof migratedFolder>>;
let service: Service;
let monitoring: string;

beforeAll(async () => {
  folder = await migratedFolder();
  const port = await freePort();
  monitoring = `http://127.0.0.1:${port}`;
  service = await startService({
    env: { DATA_DIR: folder.path, API_PROCESSES: "2", MONITORING: `127.0.0.1:${port}` },
  });
});
afterAll(async () => {
  await service?.stop();
  await folder[Symbol.asyncDispose]();
});

/** The processes of the API, which are children of the first one. */
async function processes(): Promise<number[]> {
  const pids = (await readdir("/proc")).map(Number).filter(Number.isInteger);
  const found = await Promise.all(
    pids.map(async (pid) => {
      const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
      const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
      const isOurs = new RegExp(`^PPid:\\s+${service.pid}$`, "m").test(status);
      return isOurs && command.includes("server.ts") && (await isRunning(pid)) ? [pid] : [];
    }),
  );
  return found.flat();
}

async function open(session?: Buffer): Promise<TLSSocket> {
  const { port, hostname } = new URL(service.baseUrl);
  const socket = connect({
    port: Number(port),
    host: hostname,
    rejectUnauthorized: false,
    maxVersion: "TLSv1.2",
    ...(session && { session }),
  });
  socket.on("error", () => {});
  await once(socket, "secureConnect");
  return socket;
}

const numberOf = async (sample: string) => {
  const text = await (await fetch(`${monitoring}/metrics`)).text();
  const line = text.split("\n").find((one) => one.startsWith(`${sample} `));
  return line === undefined ? undefined : Number(line.split(" ").at(-1));
};

test("spreads connections over the processes, and aggregates their metrics", async () => {
  expect(await processes()).toHaveLength(2);
  const sample = 'plat_http_requests_total{route="/healthz",method="GET",status="200"}';
  const before = (await numberOf(sample)) ?? 0;
  for (let n = 0; n < 6; n += 1)
    expect(await service.get("/healthz")).toEqual({ status: 200, body: { status: "alive" } });
  await until(async () => (await numberOf(sample)) === before + 6);
  const { checks } = (await (await fetch(`${monitoring}/readyz`)).json()) as { checks: object };
  expect(checks).toEqual({ migrated: true, writes: true, worker: true, "API processes": true });
  const expiry = await numberOf("plat_certificate_expires_timestamp_seconds");
  expect(new Date(expiry! * 1000).getFullYear()).toBeLessThan(new Date().getFullYear() + 3);
});

test("a client can resume its TLS session with any process", async () => {
  const first = await open();
  const session = first.getSession()!;
  first.destroy();
  for (let n = 0; n < 4; n += 1) {
    const socket = await open(session);
    expect(socket.isSessionReused()).toBe(true);
    socket.destroy();
  }
});

test("a process that dies is replaced, while the others serve", async () => {
  const before = await processes();
  const [victim] = before;
  process.kill(victim!, "SIGKILL");
  await service.logged("An API process ended; starting another one.");
  for (let n = 0; n < 4; n += 1) expect((await service.get("/healthz")).status).toBe(200);
  const after = await until(processes, (found) => found.length === 2, { withinMs: 30_000 });
  expect(after).not.toContain(victim);
  await until(async () => (await fetch(`${monitoring}/readyz`)).status === 200, Boolean, {
    withinMs: 30_000,
  });
});

test("running requests are answered before they stop, and none outlives the first process", async () => {
  const pids = await processes();
  const sockets = await Promise.all([open(), open()]);
  const answers = sockets.map(async (socket) => {
    let text = "";
    socket.setEncoding("utf8").on("data", (part: string) => (text += part));
    socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await once(socket, "close");
    return text;
  });
  const ended = service.stop();
  for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  expect(await ended).toMatchObject({ code: 0, signal: null });
  for (const pid of pids) await untilEnded(pid);
});

test("if they cannot start, the service does not start", async () => {
  await using other = await migratedFolder();
  const dies = `import cluster from "node:cluster"; if (cluster.isWorker) process.exit(3);`;
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(dies)}`;
  const { code, stderr } = await runToExit({
    env: { DATA_DIR: other.path, API_PROCESSES: "2", NODE_OPTIONS },
  });
  expect(code).toBe(1);
  expect(stderr).toContain("A process of the API ended before it was ready (3).");
});

test("a port in use is refused before any of them starts", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as { port: number };
  await using other = await migratedFolder();
  const { code, stderr } = await runToExit({
    env: { DATA_DIR: other.path, API_PROCESSES: "2", HOST: "127.0.0.1", PORT: `${port}` },
  });
  taken.close();
  expect(code).toBe(1);
  expect(stderr).toContain(`Port ${port} on 127.0.0.1 is taken by another program`);
});
