/**
 * Git history of committed migrations: since the baseline, none may be edited or removed, since databases have run
 * them.
 */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createHash } from "node:crypto";
import { promisify } from "node:util";

const marker = "migrations/baseline.sql";
const folder = "migrations/committed";

/** Either the findings, one sentence each, or why nothing could be checked. */
export type HistoryCheck = { faults: string[] } | { unknown: string };

/**
 * Compares the working tree with each commit since the one that last changed migrations/baseline.sql: every migration
 * committed since must exist, byte for byte as first committed.
 * @param repository the root of the working tree.
 */
export async function checkHistory(repository: string): Promise<HistoryCheck> {
  const git = async (...args: string[]) =>
    (await promisify(execFile)("git", args, { cwd: repository, maxBuffer: 100_000_000 })).stdout.trim();
  let baseline: string;
  try {
    if ((await git("rev-parse", "--is-shallow-repository")) === "true")
      return { unknown: "this clone is shallow (git fetch --unshallow)" };
    baseline = await git("log", "-1", "--format=%H", "--", marker);
  } catch {
    return { unknown: "there is no git, or no repository with a commit" };
  }
  if (!baseline) return { unknown: `${marker} is not committed yet` };

  const faults: string[] = [];
  const compared = new Set<string>();
  // The first commit counts, so that an edited file can be restored.
  const compare = async (commit: string, path: string, blob: string) => {
    if (compared.has(path)) return;
    compared.add(path);
    const text = await readFile(join(repository, path)).catch(() => undefined);
    if (text && blobHash(text) === blob) return;
    const short = commit.slice(0, 9);
    faults.push(
      `${path} was ${text ? "edited" : "removed"} after it was committed in ${short}, and databases hold it as it was: restore it with \`git checkout ${short} -- ${path}\`, and write the change into migrations/current.sql.`,
    );
  };
  for (const line of lines(await git("ls-tree", "-r", baseline, "--", folder))) {
    const [, blob, path] = /^\d+ blob (\w+)\t(.*\.sql)$/.exec(line) ?? [];
    if (blob && path) await compare(baseline, path, blob);
  }
  const since = await git(
    ...[
      "log",
      "--ancestry-path",
      // Migrations that a branch committed and withdrew before the merge are in no database of the main line.
      "--first-parent",
      "--reverse",
      "-m",
      "--raw",
      "--no-abbrev",
      "--no-renames",
      "--format=commit %H",
    ],
    ...[`${baseline}..HEAD`, "--", folder],
  );
  let commit = "";
  for (const line of lines(since)) {
    commit = /^commit (\w+)/.exec(line)?.[1] ?? commit;
    const [, blob, path] = /^:\d+ \d+ \w+ (\w+) [AM]\t(.*\.sql)$/.exec(line) ?? [];
    if (blob && path) await compare(commit, path, blob);
  }
  return { faults };
}

/** Git blob hash of a file. */
function blobHash(content: Buffer): string {
  return createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex");
}

function lines(text: string): string[] {
  return text.split("\n").filter(Boolean);
}
