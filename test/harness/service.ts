import { spawnSync, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { join, resolve } from "node:path";
import { scratchFolder } from "../../src/database/scratchFolder.ts";
import { copyDataDir, removeDataDir } from "../../src/database/dataDirs.ts";
import { testCertificate } from "./certificate.ts";
import { startChild } from "./child.ts";
import { until } from "./until.ts";

export interface ServiceOptions {
  env?: NodeJS.ProcessEnv;
  args?: string[];
  /** The user to run as. Default: the user of this process. */
  user?: { uid: number; gid: number };
  /** The clone of the repository to start. Default: this one. */
  clone?: string;
  /** The program to run. Default: the service, as `npm start` runs it. */
  entry?: string;
  /** Time limit in milliseconds until it is ready. Default: two minutes, as a busy machine is slow. */
  withinMs?: number;
}

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface Service extends AsyncDisposable {
  pid: number;
  baseUrl: string;
  exit: Promise<Exit>;
  /** Sends the signal and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Exit>;
  /** Waits until the log has a line with that message. */
  logged(message: string): Promise<string>;
  /** The lines of the log so far. */
  log(): string;
  /** The text on stderr that is meant for people, as soon as it is written. */
  banner(): Promise<string>;
  /** Waits until stderr contains such a text after that position. */
  printed(pattern: RegExp, from?: number): Promise<{ match: RegExpExecArray; end: number }>;
  /** Sends a GET request, without checking the certificate. */
  get(path: string): Promise<{ status: number; body: unknown }>;
  /** Sends a request as a visitor. */
  ask(query: string): Promise<{ status: number; body: unknown }>;
}

const readyWithinMs = 120_000;
const repository = resolve(import.meta.dirname, "../..");

interface Run {
  child: ChildProcess;
  exit: Promise<Exit>;
  output: { stdout: string; stderr: string };
}

/** Starts the entire service like a user, and waits for the line that reports that it is ready. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { child, exit, output } = runService(options);
  const logged = (message: string) =>
    new Promise<string>((found) => {
      const read = () => {
        const line = output.stdout
          .split("\n")
          .find((text) => text.includes(`"msg":${JSON.stringify(message)}`));
        if (!line) return;
        child.stdout?.off("data", read);
        found(line);
      };
      child.stdout?.on("data", read);
      read();
    });
  const ready = logged("Plat is ready.").then((line) => (JSON.parse(line) as { address: string }).address);
  // oxlint-disable-next-line no-restricted-globals -- the end of a wait
  const timer = setTimeout(() => child.kill("SIGKILL"), options.withinMs ?? readyWithinMs);
  const first = await Promise.race([ready, exit]);
  clearTimeout(timer);
  if (typeof first !== "string")
    throw new Error(
      `The service ended before it was ready (${first.code}): ${first.stderr}\n${first.stdout}`,
    );
  return {
    pid: child.pid!,
    baseUrl: first,
    exit,
    stop: (signal = "SIGTERM") => {
      child.kill(signal);
      return exit;
    },
    logged,
    log: () => output.stdout,
    banner: () =>
      new Promise((found) => {
        const read = () => {
          if (output.stderr.includes("Ctrl-C stops it.")) found(output.stderr);
        };
        child.stderr?.on("data", read);
        read();
      }),
    printed: async (pattern, from = 0) => {
      const read = () => ({
        text: output.stderr.slice(from),
        match: pattern.exec(output.stderr.slice(from)),
      });
      const { match } = await until(read, (found) => found.match, { withinMs: readyWithinMs });
      return { match: match!, end: from + match!.index + match![0].length };
    },
    get: (path) => get(`${first}${path}`),
    ask: (query) => get(`${first}/graphql`, query),
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      await exit;
    },
  };
}

/** Runs the service until it exits, for starts that are refused and for commands such as --migrate-only. */
export function runToExit(options: ServiceOptions): Promise<Exit> {
  return runService(options).exit;
}

/** The environment of `npm start` in a clone: variables and options of Node. */
export function startScript(clone: string): { env: Record<string, string>; options: string[] } {
  const { scripts } = JSON.parse(readFileSync(join(clone, "package.json"), "utf8")) as {
    scripts: { start: string };
  };
  const words = scripts.start.split(" ");
  const node = words.indexOf("node");
  const given = words
    .slice(0, node)
    .filter((word) => word.includes("="))
    .map((word) => word.split("="))
    .filter(([, value]) => !value!.includes("$"));
  return {
    env: Object.fromEntries(given),
    options: words.slice(node + 1).filter((word) => word.startsWith("--")),
  };
}

function runService({
  env = {},
  args = [],
  user = undefined,
  clone = repository,
  entry = "src/server.ts",
}: ServiceOptions): Run {
  const start = startScript(clone);
  const child = startChild([...start.options, entry, ...args], {
    cwd: clone,
    ...user,
    stdio: ["ignore", "pipe", "pipe"],
    // Without settings of the calling shell, but with those of `npm start`.
    env: {
      ...start.env,
      PATH: process.env.PATH,
      HOME: "/nonexistent",
      NODE_COMPILE_CACHE: join(repository, "node_modules", ".cache", "node"),
      GRAPHILE_ENV: "production",
      // With DATABASE_URL, the default would be production.
      NODE_ENV: "test",
      PORT: "0",
      DEMO: "0",
      ...env,
    },
  });
  const output = { stdout: "", stderr: "" };
  child.stdout!.setEncoding("utf8").on("data", (text: string) => (output.stdout += text));
  child.stderr!.setEncoding("utf8").on("data", (text: string) => (output.stderr += text));
  const exit = new Promise<Exit>((done, fail) => {
    child.once("error", fail);
    child.once("close", (code, signal) => done({ code, signal, ...output }));
  });
  return { child, exit, output };
}

/** @param query posted as a visitor. Default: a GET request. */
function get(url: string, query?: string): Promise<{ status: number; body: unknown }> {
  const asked = query !== undefined && { method: "POST", headers: { "content-type": "application/json" } };
  return new Promise((done, fail) => {
    request(url, { rejectUnauthorized: false, agent: false, ...asked }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("end", () => done({ status: response.statusCode!, body: JSON.parse(text) }));
    })
      .once("error", fail)
      .end(query && JSON.stringify({ query }));
  });
}

/** A data folder that is removed after the test, with its cluster. Default mode: 0711. */
export async function temporaryFolder(
  mode = 0o711,
  options?: { onDisk: boolean },
): Promise<AsyncDisposable & { path: string }> {
  const path = await scratchFolder("process", options);
  await chmod(path, mode);
  return { path, [Symbol.asyncDispose]: () => removeDataDir(path) };
}

/**
 * A data folder as left by an earlier run of the service that has migrated it, with its own cluster.
 * @param from the data folder to copy. Default: the one of the run.
 */
export async function migratedFolder(
  from = process.env.PLAT_TEST_MIGRATED,
): Promise<AsyncDisposable & { path: string }> {
  if (!from) throw new Error("There is no migrated folder: start the tests through `npm test`.");
  const folder = await temporaryFolder();
  await copyDataDir(from, folder.path);
  // As stored by the earlier run: creating one takes as long as the copy.
  const { cert, key } = await testCertificate();
  await writeFile(join(folder.path, "certificate.pem"), cert);
  await writeFile(join(folder.path, "key.pem"), key, { mode: 0o600 });
  return folder;
}

/** The process number of the embedded database of a data folder. */
export async function postmasterPid(dataDir: string): Promise<number> {
  const text = await readFile(join(dataDir, "postgres", "data", "postmaster.pid"), "utf8");
  return Number(text.split("\n")[0]);
}

/** The user id that a process runs as. */
export function ownerOf(pid: number): number {
  return Number(spawnSync("ps", ["-o", "uid=", "-p", String(pid)], { encoding: "utf8" }).stdout);
}

/** Whether that process is alive; a zombie is not. */
export async function isRunning(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return !/\) [ZX] /.test(status);
}

/** Waits until a process that is not our child has ended. */
export async function untilEnded(pid: number): Promise<void> {
  await until(async () => !(await isRunning(pid)));
}
