/**
 * Starts PgBouncer in front of a server. It is installed with `apt-get install pgbouncer`; the variable PGBOUNCER can
 * name the program of another version.
 */
import { execFileSync } from "node:child_process";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { onConnection } from "../../src/database/onConnection.ts";
import { freePort } from "../../src/network/freePort.ts";
import { killChild, startProgram } from "./child.ts";
import { temporaryFolder } from "./service.ts";
import { until } from "./until.ts";

const binary = process.env.PGBOUNCER ?? "pgbouncer";

export interface Pooler extends AsyncDisposable {
  /** Connection string of the owner through the pooler, which pools by transaction or by session. */
  url(mode: "transaction" | "session"): string;
  /** Configures another server and reloads the configuration. */
  pointAt(serverUrl: string): Promise<void>;
}

/** @param logins connection strings of the permitted users, the owner's first */
export async function startPooler(serverUrl: string, logins: readonly string[]): Promise<Pooler> {
  const folder = await temporaryFolder();
  await chmod(folder.path, 0o755);
  const port = await freePort();
  const [settings, users] = [join(folder.path, "pgbouncer.ini"), join(folder.path, "users.txt")];
  const given = logins.map((login) => new URL(login));
  const owner = given[0]!;
  const write = async (file: string, text: string) => {
    await writeFile(file, text);
    await chmod(file, 0o644);
  };
  const writeSettings = async (server: URL) => {
    const at = `host=${server.hostname} port=${server.port} dbname=${server.pathname.slice(1)}`;
    await write(
      settings,
      `[databases]
transaction = ${at} pool_mode=transaction
session = ${at} pool_mode=session
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
admin_users = ${owner.username}
default_pool_size = 4
server_idle_timeout = 600
server_login_retry = 1
${tracksStatements() ? "max_prepared_statements = 200\n" : ""}`,
    );
  };
  await write(
    users,
    given.map(({ username, password }) => `"${username}" "${decodeURIComponent(password)}"\n`).join(""),
  );
  await writeSettings(new URL(serverUrl));
  // It refuses to run as root.
  const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  const program = startProgram(binary, [settings], { stdio: "ignore", ...nobody });
  const url = (name: string) => {
    const at = new URL(owner);
    at.port = String(port);
    at.pathname = `/${name}`;
    return at.href;
  };
  await until(
    () => onConnection(url("session"), async () => true).catch(() => false),
    (isThere) => isThere,
  );
  return {
    url,
    pointAt: async (server) => {
      await writeSettings(new URL(server));
      // Its console only supports the simple query protocol, which psql uses.
      execFileSync("psql", [url("pgbouncer"), "-c", "RELOAD"], { stdio: "ignore" });
    },
    [Symbol.asyncDispose]: async () => {
      await killChild(program);
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** PgBouncer 1.21 and newer track prepared statements; what is older needs PREPARED_STATEMENTS=0. */
export function tracksStatements(): boolean {
  const output = execFileSync(binary, ["--version"], { encoding: "utf8" });
  const [, major, minor] = /(\d+)\.(\d+)/.exec(output)!;
  return Number(major) > 1 || Number(minor) >= 21;
}
