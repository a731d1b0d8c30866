import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { once } from "node:events";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { connect } from "node:tls";
import {
  untilEnded,
  isRunning,
  migratedFolder,
  ownerOf,
  postmasterPid,
  runToExit,
  startService,
  temporaryFolder,
  type Service,
} from "../harness/service.ts";
import { until } from "../harness/until.ts";

test("starts in an empty folder of mode 0700 as any user, keeps secrets for the owner, starts again on the same data, and leaves no process behind", async () => {
  await using folder = await temporaryFolder(0o700);
  const env = { DATA_DIR: folder.path };
  await using first = await startService({ env });
  const postmaster = await postmasterPid(folder.path);
  expect(await isRunning(postmaster)).toBe(true);
  expect(ownerOf(postmaster)).not.toBe(0);
  expect(await first.get("/healthz")).toEqual({ status: 200, body: { status: "alive" } });
  expect(await first.get("/readyz")).toEqual({
    status: 200,
    body: { status: "ready", checks: { migrated: true, writes: true, worker: true, database: true } },
  });
  const password = await readFile(join(folder.path, "postgres.password"), "utf8");
  for (const name of ["postgres.password", "jwt.key", "key.pem", "postgres.log"])
    expect({ name, mode: (await stat(join(folder.path, name))).mode & 0o777 }).toEqual({ name, mode: 0o600 });
  const ended = await first.stop("SIGTERM");
  expect(ended).toMatchObject({ code: 0, signal: null });
  expect(ended.stdout).not.toContain(password.trim());
  expect(await isRunning(postmaster)).toBe(false);

  expect(await runToExit({ env, args: ["--migrate-only"] })).toMatchObject({ code: 0 });
  await using second = await startService({ env });
  expect(await readFile(join(folder.path, "postgres.password"), "utf8")).toBe(password);
  const next = await postmasterPid(folder.path);
  expect(ownerOf(next)).not.toBe(0);
  expect((await stat(folder.path)).mode & 0o777).toBe(0o700);
  expect(await second.stop("SIGINT")).toMatchObject({ code: 0, signal: null });
  expect(await isRunning(next)).toBe(false);
});

describe("a running service", () => {
  let folder: Awaited<ReturnType<typeof migratedFolder>>;
  let service: Service | undefined;
  beforeAll(async () => {
    folder = await migratedFolder();
  });
  afterAll(async () => {
    // Stopped rather than killed: its database would continue, and write into the folder while it is removed.
    await service?.stop();
    await folder[Symbol.asyncDispose]();
  });

  /** The running service, or a new one if a test has ended it. */
  async function running(): Promise<Service> {
    if (service && !(await isRunning(service.pid))) service = undefined;
    return (service ??= await startService({ env: { DATA_DIR: folder.path } }));
  }

  test("a start after SIGKILL stops the leftover database", async () => {
    const killed = await running();
    const leftover = await postmasterPid(folder.path);
    await killed.stop("SIGKILL");
    const next = await running();
    expect(next).not.toBe(killed);
    expect(await isRunning(leftover)).toBe(false);
    expect(await next.get("/readyz")).toMatchObject({ status: 200 });
  });

  test("a second signal does not wait for unfinished requests", async () => {
    const { pid, baseUrl, exit, logged } = await running();
    const postmaster = await postmasterPid(folder.path);
    const socket = connect({
      host: "127.0.0.1",
      port: Number(new URL(baseUrl).port),
      rejectUnauthorized: false,
    });
    await once(socket, "secureConnect");
    // A response on the same connection proves that the server has received the unfinished request after it.
    socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\n");
    await once(socket, "data");
    // Signals within the first second count as one.
    const impatient = setInterval(() => process.kill(pid, "SIGINT"), 100);
    void exit.finally(() => clearInterval(impatient));
    await logged("Stopping.");
    expect(await exit).toMatchObject({ code: 130 });
    socket.destroy();
    await untilEnded(postmaster);
  });

  test("a second service on the same folder is refused and does not affect the first", async () => {
    const first = await running();
    const refused = await runToExit({ env: { DATA_DIR: folder.path } });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /^Another Plat process is using the data folder .*choose another folder with DATA_DIR\.\n$/,
    );
    expect(await first.get("/readyz")).toMatchObject({ status: 200 });
  });

  test("a port in use is reported with one sentence, and the database is stopped again", async () => {
    const { baseUrl } = await running();
    await using other = await temporaryFolder();
    const refused = await runToExit({ env: { DATA_DIR: other.path, PORT: new URL(baseUrl).port } });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/^Port \d+ on 127\.0\.0\.1 is taken by another program/);
    expect(refused.stdout).not.toContain("migration.run");
    await expect(postmasterPid(other.path)).rejects.toMatchObject({ code: "ENOENT" });
  });

  test("restarts its database when it dies", async () => {
    const { get, pid } = await running();
    const died = await postmasterPid(folder.path);
    process.kill(died, "SIGQUIT");
    await until(
      () => postmasterPid(folder.path).catch(() => died),
      (now) => now !== died,
    );
    await until(
      () => get("/readyz"),
      ({ status }) => status === 200,
    );
    expect(await isRunning(pid)).toBe(true);
  });
});
