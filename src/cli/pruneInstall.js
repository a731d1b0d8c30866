/**
 * Runs after each installation, on whatever Node npm found, hence plain JavaScript. It removes what packages bring along and nothing here reads:
 * source maps, sources in TypeScript (Node takes none from packages), guides, and the headers for building native modules of the Node that runs
 * the service. That is a third of an installation.
 */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

const modules = join(import.meta.dirname, "../../node_modules");

const unread = /(?<!\.d)\.ts$|\.map$|(?<!licen[cs]e.*)\.md$/i;

/** @param {string} folder */
function removeUnread(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) removeUnread(path);
    else if (entry.isFile() && unread.test(entry.name)) rmSync(path);
  }
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
  removeUnread(modules);
  removeHeaders();
}
