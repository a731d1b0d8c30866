/** Part of `npm run check`: deprecations have a successor and a date, and breaking changes require a new major version. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { buildSchema } from "postgraphile/graphql";
import { breakingChanges, deprecationFaults } from "../checks/versions.ts";

const repository = join(import.meta.dirname, "../..");
const run = promisify(execFile);
const git = async (...args: string[]) =>
  (await run("git", args, { cwd: repository, maxBuffer: 64_000_000 })).stdout.trim();

/** The schema of the last release; undefined before the first one, or without a git history. */
const lastTag = async () =>
  git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*").catch(() => undefined);

const major = (version: string) => Number(version.replace(/^v/, "").split(".")[0]);

const schema = buildSchema(await readFile(join(repository, "schema.graphql"), "utf8"));
const faults = deprecationFaults(schema);
const tag = await lastTag();
if (tag !== undefined) {
  const { version } = JSON.parse(await readFile(join(repository, "package.json"), "utf8")) as {
    version: string;
  };
  const released = buildSchema(await git("show", `${tag}:schema.graphql`));
  if (major(version) <= major(tag))
    for (const change of await breakingChanges(released, schema))
      faults.push(
        `${change} This breaks clients of ${tag}: deprecate it, or raise the major version in package.json.`,
      );
}
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;
