/** A disk that can be filled: the cluster of a data folder is on a small file system. */
import { execFileSync } from "node:child_process";
import { closeSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { mkdtemp, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface SmallDisk extends AsyncDisposable {
  path: string;
  /** Writes until the disk is full. */
  fill(): void;
  /** Frees the space again. */
  clear(): void;
}

/**
 * Mounts a file system in memory. @param megabytes its size
 * @throws Error if this process may not mount, as in most containers
 */
export async function mountSmallDisk(megabytes: number): Promise<SmallDisk> {
  const path = await mkdtemp(join(tmpdir(), "plat-disk-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=0711`, "plat-disk", path], {
      stdio: ["ignore", "ignore", "pipe"],
    });
  } catch (error) {
    await rmdir(path);
    throw error;
  }
  // Also if the test ends early.
  const unmount = () => execFileSync("umount", ["-l", path], { stdio: "ignore" });
  process.once("exit", unmount);
  const filler = join(path, "filler");
  return {
    path,
    fill() {
      const file = openSync(filler, "a");
      try {
        // In decreasing chunks, until not a single byte fits.
        for (let size = 2 ** 24; size >= 1; size = Math.floor(size / 2)) {
          const piece = Buffer.alloc(size);
          try {
            while (statfsSync(path).bavail > 0 && writeSync(file, piece) === size);
          } catch (error) {
            if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
          }
        }
      } finally {
        closeSync(file);
      }
    },
    clear: () => rmSync(filler, { force: true }),
    async [Symbol.asyncDispose]() {
      process.off("exit", unmount);
      unmount();
      await rmdir(path);
    },
  };
}
