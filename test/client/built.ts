import { copyFile, mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { build } from "../../packages/client/scripts/build.ts";

const source = resolve(import.meta.dirname, "../../packages/client");

/**
 * Builds the client into `node_modules` of a folder, as an installation of the package would leave it.
 * @returns the folder of the package
 */
export async function builtClient(folder: string): Promise<string> {
  const to = join(folder, "node_modules/@plat/client");
  await mkdir(to, { recursive: true });
  await copyFile(join(source, "package.json"), join(to, "package.json"));
  await build(join(to, "dist"));
  return to;
}
