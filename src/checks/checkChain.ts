import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { basename, join, relative } from "node:path";
import type { SqlFile } from "./checkFiles.ts";
import type { Finding } from "./rule.ts";
import { repository } from "./sources.ts";

/**
 * Statements of migrations that block others or break running processes. Irrelevant up to the end of the baseline, because no database with
 * data is older.
 */
const onRunningSystems: ReadonlySet<string> = new Set([
  "adding-field-with-default",
  "adding-foreign-key-constraint",
  "adding-not-nullable-field",
  "adding-required-field",
  "ban-alter-domain-with-add-constraint",
  "ban-drop-column",
  "ban-drop-not-null",
  "ban-drop-table",
  "changing-column-type",
  "constraint-missing-not-valid",
  "disallowed-unique-constraint",
  "renaming-column",
  "renaming-table",
  "require-concurrent-index-creation",
  "require-concurrent-index-deletion",
]);

interface Problem {
  file: string;
  line: number;
  message: string;
  help: string | null;
  rule_name: string;
}

/**
 * Checks the chain of migrations with squawk, by the rules of .squawk.toml.
 * @param files all of migrations/
 * @param folder where they are; by default the repository
 */
export async function checkChain(files: readonly SqlFile[], folder = repository): Promise<Finding[]> {
  const last = lastOfBaseline(files);
  const chain = files.filter(({ path }) => /^migrations\/(committed\/|current)/.test(path));
  const alone = ({ text }: SqlFile) => /^--! no-transaction/m.test(text);
  const problems = [
    ...(await squawk(
      folder,
      chain.filter((file) => !alone(file)),
    )),
    ...(await squawk(folder, chain.filter(alone), "--no-assume-in-transaction")),
  ];
  return problems
    .filter(({ file, rule_name }) => !onRunningSystems.has(rule_name) || !isOfBaseline(file, last))
    .map(({ file, line, rule_name, message, help }) => ({
      rule: rule_name,
      object: `${relative(folder, file)}:${line + 1}`,
      write: [message, help].filter(Boolean).join(" "),
    }));
}

/** The last migration of the baseline, as migrations/baseline.sql names it. */
function lastOfBaseline(files: readonly SqlFile[]): string | undefined {
  const marker = files.find(({ path }) => path === "migrations/baseline.sql");
  return marker && /^--! Through: (\S+)/m.exec(marker.text)?.[1];
}

/** Committed files are numbered, so that their names sort in order; if none is marked, all of them are the baseline. */
function isOfBaseline(path: string, last: string | undefined): boolean {
  return path.includes("/committed/") && (last === undefined || basename(path) <= last);
}

function squawk(folder: string, files: readonly SqlFile[], ...options: string[]): Promise<Problem[]> {
  if (files.length === 0) return Promise.resolve([]);
  const program = createRequire(import.meta.url).resolve("squawk-cli/js/bin/squawk");
  const paths = files.map(({ path }) => join(folder, path));
  const config = join(repository, ".squawk.toml");
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [program, "--config", config, "--reporter", "json", ...options, ...paths],
      { maxBuffer: 64 * 1024 * 1024 },
      // The exit code is 1 if it found something.
      (error, stdout, stderr) => {
        if (stdout.startsWith("[")) resolve(JSON.parse(stdout) as Problem[]);
        else reject(new Error(`squawk did not run: ${stderr.trim() || error?.message}`));
      },
    );
  });
}
