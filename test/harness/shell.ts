import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Runs commands like a reader of the guides: in bash, with curl, without the environment of this process. */
export interface Shell extends AsyncDisposable {
  /** @returns the standard output of the commands; throws if one of them fails. */
  run(commands: string, env?: Record<string, string>): Promise<string>;
}

export async function openShell(): Promise<Shell> {
  const folder = await mkdtemp(join(tmpdir(), "plat-shell-"));
  const path = process.env.PATH ?? "";
  const hasCurl = await run("bash", ["-c", "command -v curl"]).then(
    () => true,
    () => false,
  );
  if (!hasCurl) {
    const curl = join(folder, "curl");
    await writeFile(
      curl,
      `#!/bin/sh\nexec '${process.execPath}' '${join(import.meta.dirname, "curl.ts")}' "$@"\n`,
    );
    await chmod(curl, 0o755);
  }
  return {
    run: async (commands, env = {}) => {
      const { stdout } = await run("bash", ["-euo", "pipefail", "-c", commands], {
        env: { PATH: `${folder}:${path}`, ...env },
      });
      return stdout;
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}
