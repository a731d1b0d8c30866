import { expect, test } from "@jest/globals";
import { once } from "node:events";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { connect } from "node:tls";
import {
  gone,
  isRunning,
  postmasterPid,
  runToExit,
  startService,
  temporaryFolder,
} from "../harness/service.ts";

test("starts on an empty folder, starts again on the same data, and leaves no process behind", async () => {
  await using folder = await temporaryFolder();
  const env = { DATA_DIR: folder.path };
  await using first = await startService({ env });
  const postmaster = await postmasterPid(folder.path);
  expect(await isRunning(postmaster)).toBe(true);
  expect(await first.get("/healthz")).toEqual({ status: 200, body: { status: "alive" } });
  expect(await first.get("/readyz")).toEqual({
    status: 200,
    body: { status: "ready", checks: { migrated: true, worker: true, database: true } },
  });
  const password = await readFile(join(folder.path, "postgres.password"), "utf8");
  expect(await first.stop("SIGTERM")).toMatchObject({ code: 0, signal: null });
  expect(await isRunning(postmaster)).toBe(false);

  await using second = await startService({ env });
  expect(await readFile(join(folder.path, "postgres.password"), "utf8")).toBe(password);
  const next = await postmasterPid(folder.path);
  expect(await second.stop("SIGINT")).toMatchObject({ code: 0, signal: null });
  expect(await isRunning(next)).toBe(false);
});

test("secrets in the data folder are for the owner only", async () => {
  await using folder = await temporaryFolder();
  await using service = await startService({ env: { DATA_DIR: folder.path } });
  for (const name of ["postgres.password", "jwt.key", "key.pem", "postgres.log"])
    expect({ name, mode: (await stat(join(folder.path, name))).mode & 0o777 }).toEqual({ name, mode: 0o600 });
  const { stdout } = await service.stop();
  expect(stdout).not.toContain((await readFile(join(folder.path, "postgres.password"), "utf8")).trim());
});

test("after SIGKILL the next start stops the database that was left over, and goes on", async () => {
  await using folder = await temporaryFolder();
  const env = { DATA_DIR: folder.path };
  await using killed = await startService({ env });
  const leftover = await postmasterPid(folder.path);
  await killed.stop("SIGKILL");
  await using next = await startService({ env });
  expect(await isRunning(leftover)).toBe(false);
  expect(await next.get("/readyz")).toMatchObject({ status: 200 });
  expect(await next.stop()).toMatchObject({ code: 0 });
});

test("a second service on the same folder is refused and does not disturb the first", async () => {
  await using folder = await temporaryFolder();
  const env = { DATA_DIR: folder.path };
  await using first = await startService({ env });
  const refused = await runToExit({ env });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(
    /^Another Plat process is using the data folder .*choose another folder with DATA_DIR\.\n$/,
  );
  expect(await first.get("/readyz")).toMatchObject({ status: 200 });
  await first.stop();
});

test("a service whose database dies ends itself with a failure", async () => {
  await using folder = await temporaryFolder();
  await using service = await startService({ env: { DATA_DIR: folder.path } });
  process.kill(await postmasterPid(folder.path), "SIGQUIT");
  expect(await service.exit).toMatchObject({ code: 1, signal: null });
});

test("a port that is taken is refused in a sentence, and the database is stopped again", async () => {
  await using folder = await temporaryFolder();
  await using other = await temporaryFolder();
  await using first = await startService({ env: { DATA_DIR: folder.path } });
  const refused = await runToExit({ env: { DATA_DIR: other.path, PORT: new URL(first.baseUrl).port } });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/^Port \d+ on 127\.0\.0\.1 is taken by another program/);
  await expect(postmasterPid(other.path)).rejects.toMatchObject({ code: "ENOENT" });
  await first.stop();
});

test("a second signal does not wait for a request that does not end", async () => {
  await using folder = await temporaryFolder();
  await using service = await startService({ env: { DATA_DIR: folder.path } });
  const postmaster = await postmasterPid(folder.path);
  const socket = connect({
    host: "127.0.0.1",
    port: Number(new URL(service.baseUrl).port),
    rejectUnauthorized: false,
  });
  await once(socket, "secureConnect");
  // An answer on the same connection proves that the unfinished request after it has a listener.
  socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\n");
  await once(socket, "data");
  // The first second's signals count as one.
  const impatient = setInterval(() => process.kill(service.pid, "SIGINT"), 100);
  void service.exit.finally(() => clearInterval(impatient));
  await service.logged("Stopping.");
  expect(await service.exit).toMatchObject({ code: 130 });
  socket.destroy();
  await gone(postmaster);
});
