/**
 * Runs after each installation, on whatever Node npm found, hence plain JavaScript. It removes what packages bring along and nothing here reads:
 * source maps, and the headers for building native modules of the Node that runs the service. That is a third of a production installation.
 */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

const modules = join(import.meta.dirname, "../../node_modules");

/** @param {string} folder */
function removeSourceMaps(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) removeSourceMaps(path);
    else if (entry.isFile() && entry.name.endsWith(".map")) rmSync(path);
  }
}

function removeHeaders() {
  const platforms = join(modules, "node/node_modules");
  if (!existsSync(platforms)) return;
  for (const platform of readdirSync(platforms)) {
    rmSync(join(platforms, platform, "include"), { recursive: true, force: true });
    rmSync(join(platforms, platform, "share"), { recursive: true, force: true });
  }
}

if (existsSync(modules)) {
  removeSourceMaps(modules);
  removeHeaders();
}
