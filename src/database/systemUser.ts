import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";

/** Whom to run PostgreSQL as, in the form that `spawn` takes; empty for the user we already are. */
export interface RunAs {
  uid?: number;
  gid?: number;
}

/**
 * PostgreSQL refuses to run as root. Root therefore runs it as the owner of an existing cluster, or as the
 * system user `postgres`, who is created when missing.
 * @param cluster the cluster's folder, if there is one already.
 * @throws Error with a sentence for the user when no such user can be had.
 */
export function databaseUser(cluster: string | undefined): RunAs {
  if (process.getuid?.() !== 0) return {};
  if (cluster) {
    const { uid, gid } = statSync(cluster);
    if (uid !== 0) return { uid, gid };
  }
  return lookUp("postgres") ?? create("postgres");
}

/** PERF: users that were found; who starts many databases asks for one again and again. */
const found = new Map<string, RunAs>();

function lookUp(name: string): RunAs | undefined {
  const known = found.get(name);
  if (known) return known;
  const { status, stdout } = spawnSync("/bin/sh", ["-c", 'id -u "$1" && id -g "$1"', "sh", name], {
    encoding: "utf8",
  });
  if (status !== 0) return undefined;
  const [uid, gid] = stdout.split("\n").map(Number);
  const user = { uid, gid } as RunAs;
  found.set(name, user);
  return user;
}

function create(name: string): RunAs {
  // The shadow suite's spelling, then BusyBox's.
  const attempts: [string, string[]][] = [
    ["useradd", ["--system", "--user-group", "--no-create-home", "--shell", "/bin/false", name]],
    ["adduser", ["-S", "-D", "-H", "-s", "/bin/false", name]],
  ];
  for (const [command, args] of attempts) {
    spawnSync(command, args);
    const user = lookUp(name);
    if (!user) continue;
    console.error(
      `Plat was started by root, as whom PostgreSQL does not run: the system user "${name}" was created for it (${command}).`,
    );
    return user;
  }
  throw new Error(
    `PostgreSQL does not run as root, and the system user "${name}" could not be created: create it, start Plat as another user, or set DATABASE_URL.`,
  );
}

/** Whether that user can pass through every folder above `path`, and through `path` itself. */
export function canReach(path: string, { uid, gid }: RunAs): boolean {
  if (uid === undefined) return true;
  // Asked of the kernel as that user, since mode bits alone do not tell about ACLs and read-only mounts.
  return spawnSync("/bin/sh", ["-c", 'test -x "$1"', "sh", path], { uid, gid, cwd: "/" }).status === 0;
}
