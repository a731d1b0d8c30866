/**
 * Runs after each installation, on whatever Node npm found, hence plain JavaScript. It removes what packages bring along and nothing here reads:
 * source maps, sources in TypeScript (Node takes none from packages), guides, the headers for building native modules of the Node that runs
 * the service, builds for other module systems, and fonts that no document is set in. That is a third of an installation.
 */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

const modules = join(import.meta.dirname, "../../node_modules");

const unread = /(?<!\.d)\.ts$|\.map$|(?<!licen[cs]e.*)\.md$/i;

/**
 * @param {string} folder
 * @param {RegExp} names of files that go
 */
function removeUnread(folder, names) {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    // Of programs, not of packages; a database folder that is kept there has files of such names.
    if (folder === modules && entry.name === ".cache") continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) removeUnread(path, names);
    else if (entry.isFile() && names.test(entry.name)) rmSync(path);
  }
}

/** @param {string} path below node_modules */
const remove = (path) => rmSync(join(modules, path), { recursive: true, force: true });

function removeFonts() {
  const folder = "dejavu-fonts-ttf/ttf";
  if (!existsSync(join(modules, folder))) return;
  // src/pdf/layout.ts
  const used = ["DejaVuSansCondensed.ttf", "DejaVuSansCondensed-Bold.ttf"];
  for (const font of readdirSync(join(modules, folder)))
    if (!used.includes(font)) remove(`${folder}/${font}`);
}

function removeHeaders() {
  const platforms = join(modules, "node/node_modules");
  if (!existsSync(platforms)) return;
  for (const platform of readdirSync(platforms, { withFileTypes: true })) {
    if (!platform.isDirectory()) continue;
    for (const unused of ["include", "share"])
      rmSync(join(platforms, platform.name, unused), { recursive: true, force: true });
  }
}

if (existsSync(modules)) {
  removeUnread(modules, unread);
  removeHeaders();
  removeFonts();
  // Those of its ES modules are read.
  removeUnread(join(modules, "stripe/cjs"), /\.d\.ts$/);
}
