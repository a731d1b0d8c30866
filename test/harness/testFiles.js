/** Tells the test files that need the database of the run from those that do not, by what they import. */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

const folder = resolve(import.meta.dirname, "..");
/** Whoever asks for what the global set-up leaves needs it. */
const asks = /process\.env\.PLAT_TEST_/;
const imports = /^(?:import|export)(?! type\b)[^;"]*"(\.[^"]+\.ts)"|\bimport\("(\.[^"]+\.ts)"\)/gm;

/** @type {Map<string, { asks: boolean, imports: string[] }>} */
const known = new Map();

/** @param {string} file */
function read(file) {
  let found = known.get(file);
  if (!found) {
    const text = readFileSync(file, "utf8");
    const paths = [...text.matchAll(imports)].map(([, path, lazy]) =>
      join(dirname(file), path ?? lazy ?? ""),
    );
    // What is tested knows nothing of the tests.
    found = {
      asks: asks.test(text),
      imports: paths.filter((path) => !path.startsWith(join(folder, "../src"))),
    };
    known.set(file, found);
  }
  return found;
}

/** @param {string} file */
function needsDatabase(file) {
  const seen = new Set([file]);
  for (const next of seen) {
    const found = read(next);
    if (found.asks) return true;
    for (const path of found.imports) seen.add(path);
  }
  return false;
}

/** @returns {{ database: string[], unit: string[] }} patterns of jest */
export function testFiles() {
  const files = globSync("**/*.test.ts", { cwd: folder }).toSorted();
  const database = files.filter((file) => needsDatabase(join(folder, file)));
  const pattern = (/** @type {string} */ file) => `<rootDir>/test/${file}`;
  return {
    database: database.map(pattern),
    unit: files.filter((file) => !database.includes(file)).map(pattern),
  };
}
