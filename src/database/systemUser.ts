import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";

/** User to run PostgreSQL as, in the form that `spawn` takes; empty for the current user. */
export interface RunAs {
  uid?: number;
  gid?: number;
}

/**
 * PostgreSQL refuses to run as root. Root therefore runs it as the owner of an existing cluster, or as the system
 * user `postgres`, who is created if missing.
 * @param cluster the cluster's folder, if it exists.
 * @throws Error with a message for the user if there is no such user.
 */
export function databaseUser(cluster: string | undefined): RunAs {
  if (process.getuid?.() !== 0) return {};
  if (cluster) {
    const { uid, gid } = statSync(cluster);
    if (uid !== 0) return { uid, gid };
  }
  return lookUp("postgres") ?? create("postgres");
}

/** PERF: cache of users; starting many databases looks one up again and again. */
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
  // The option names of the shadow suite, then of BusyBox.
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

/** Whether that user can traverse every folder above `path`, and `path` itself. */
export function canReach(path: string, { uid, gid }: RunAs): boolean {
  if (uid === undefined) return true;
  // Tested as that user, since mode bits do not reflect ACLs and read-only mounts.
  return spawnSync("/bin/sh", ["-c", 'test -x "$1"', "sh", path], { uid, gid, cwd: "/" }).status === 0;
}
