/**
 * Packages that only one command needs. They are not part of a plain install: each has a folder with its own lock file.
 */
import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const changed = async (file: string): Promise<number> =>
  stat(file).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );

/** Installs the packages of a folder, unless they have been installed since its lock file was changed. */
export async function installPackagesOf(folder: string): Promise<void> {
  const [wanted, installed] = await Promise.all([
    changed(join(folder, "package-lock.json")),
    changed(join(folder, "node_modules/.package-lock.json")),
  ]);
  if (installed > wanted) return;
  await promisify(execFile)("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts"], { cwd: folder });
}
