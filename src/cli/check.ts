/**
 * `npm run check`: types, formatting, lint, and whether generated files are up to date. The parts run concurrently;
 * those that need a migrated database share one. The output of each part is shown when it ends, and a failure does
 * not stop the others.
 */
import { join } from "node:path";
import { runPart, type CheckPart } from "../checks/parts.ts";
import { withScratchDatabase } from "./scratchDatabase.ts";

const repository = join(import.meta.dirname, "../..");
const cache = join(repository, "node_modules/.cache");
const env = {
  ...process.env,
  NODE_COMPILE_CACHE: join(cache, "node"),
  GRAPHILE_ENV: "production",
};

const tool = (name: string, ...args: string[]) => ({
  command: join(repository, "node_modules/.bin", name),
  args,
});
const script = (file: string, ...args: string[]) => ({
  command: process.execPath,
  args: [join(repository, "src/cli", file), ...args],
});

/** PERF: results are cached by content. */
const parts: CheckPart[] = [
  { name: "types", ...tool("tsc", "--incremental", "--tsBuildInfoFile", join(cache, "tsc/tsbuildinfo")) },
  {
    name: "form",
    chatty: true,
    ...tool(
      "prettier",
      "--check",
      "--cache",
      "--cache-strategy",
      "content",
      "--cache-location",
      join(cache, "prettier/cache"),
      ".",
    ),
  },
  { name: "lint", chatty: true, ...tool("oxlint", "--type-aware") },
  { name: "migrations", ...script("checkMigrations.ts") },
  { name: "settings", ...script("writeSettingsTable.ts", "--check") },
  { name: "version", ...script("checkVersion.ts") },
  { name: "prose", ...script("checkProse.ts") },
  { name: "layers", ...script("checkLayers.ts") },
  { name: "GraphQL rules", ...script("checkGraphqlRules.ts") },
  { name: "portal", ...script("portal.ts", "--check") },
];
const onDatabase = (ownerUrl: string): CheckPart[] => [
  { name: "schema", ...script("schema.ts", "--check", ownerUrl) },
  { name: "docs", ...script("docs.ts", "--check", ownerUrl) },
  { name: "rules of the schema", ...script("checkSchema.ts", ownerUrl) },
];

const red: string[] = [];
const run = async (part: CheckPart) => {
  if (!(await runPart(part, { cwd: repository, env, show: (text) => process.stdout.write(text) })))
    red.push(part.name);
};
const databases = withScratchDatabase(
  async (ownerUrl) => void (await Promise.all(onDatabase(ownerUrl).map(run))),
).catch((error: Error) => {
  console.error(error.message);
  red.push("database");
});
await Promise.all([databases, ...parts.map(run)]);

if (red.length === 0) console.log("All is well.");
else {
  console.error(`Red: ${red.join(", ")}.`);
  process.exitCode = 1;
}
