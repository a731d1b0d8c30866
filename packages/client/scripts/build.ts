/**
 * Builds the package: `node scripts/build.ts [folder]`. Default: `dist`. Only needs the packages installed in
 * the repository. The modules are published as compiled; bundlers of applications minify them.
 */
import { execFile } from "node:child_process";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { buildSchema } from "graphql";
import { generate } from "./generate.ts";

const folder = resolve(import.meta.dirname, "..");
const repository = resolve(folder, "../..");

/** Compiles the sources into a folder, and generates the files that are derived from the schema. */
export async function build(to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  const schemaFile = join(repository, "schema.graphql");
  const compile = (project: string) =>
    promisify(execFile)(join(repository, "node_modules/.bin/tsc"), [
      "-p",
      join(folder, project),
      "--outDir",
      to,
    ]);
  // The compilation of the command line also writes the modules that it shares with the client; those of the
  // client, for older runtimes, are kept.
  const compiled = compile("tsconfig.cli.json").then(() => compile("tsconfig.json"));
  const files = generate(buildSchema(await readFile(schemaFile, "utf8")));
  await Promise.all([
    compiled,
    copyFile(schemaFile, join(to, "schema.graphql")),
    ...Object.entries(files).map(([name, text]) => writeFile(join(to, name), text)),
  ]);
}

if (import.meta.main) await build(resolve(process.argv[2] ?? join(folder, "dist")));
