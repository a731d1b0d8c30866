import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { databaseUser } from "../../src/database/systemUser.ts";
import { temporaryFolder } from "../harness/service.ts";
import { unpack } from "./archive.ts";

const ending = ".tar.zst";

/** The data folders in test/releases, by name. */
export function keptReleases(): string[] {
  return readdirSync(import.meta.dirname)
    .filter((file) => file.endsWith(ending))
    .map((file) => file.slice(0, -ending.length));
}

/** Unpacks such a folder into a temporary one. */
export async function unpackRelease(name: string): Promise<AsyncDisposable & { path: string }> {
  const folder = await temporaryFolder();
  await unpack(await readFile(join(import.meta.dirname, name + ending)), folder.path);
  const { uid, gid } = databaseUser(undefined);
  if (uid !== undefined)
    await promisify(execFile)("chown", ["-R", `${uid}:${gid}`, join(folder.path, "postgres")]);
  return folder;
}
