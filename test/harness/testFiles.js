/** Tells the test files that need the database of the run from those that do not, by what they import. */
import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

const folder = resolve(import.meta.dirname, "..");
/** What is run by its name, in the long form alone. */
const isLong = /\.long\.test\.ts$/;
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

/** A file and all that it imports. @param {string} file */
function closure(file) {
  const seen = new Set([join(folder, file)]);
  for (const next of seen) for (const path of read(next).imports) seen.add(path);
  return [...seen];
}

/**
 * @param {{ long: boolean }} options long: those only that do more in the long form
 * @returns {{ database: string[], unit: string[] }} patterns of jest
 */
export function testFiles({ long }) {
  const seeds = join(folder, "harness/seeds.ts");
  const files = globSync("**/*.test.ts", {
    cwd: folder,
    exclude: (path) => basename(path) === "node_modules",
  })
    .toSorted()
    .filter((file) => (isLong.test(file) ? long : !long || closure(file).includes(seeds)));
  const database = files.filter((file) => closure(file).some((path) => read(path).asks));
  const pattern = (/** @type {string} */ file) => `<rootDir>/test/${file}`;
  return {
    database: database.map(pattern),
    unit: files.filter((file) => !database.includes(file)).map(pattern),
  };
}
