/**
 * The layers of the sources. A file imports from its own folder, from folders of lower layers, and from those of its own layer that are
 * listed after its own. So no import points upwards, and no folders import each other in a circle.
 */
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { filesBelow, repository } from "./sources.ts";

interface Layer {
  name: string;
  /** Folders of `src`, importing ones first; "." is `src` itself. */
  folders: readonly string[];
}

/** From the entry points down to what everything may use. */
export const layers: readonly Layer[] = [
  {
    name: "composition root",
    folders: ["cli", "dev", "explain", "docs", "doctor", ".", "service", "demo", "checks"],
  },
  { name: "transport", folders: ["http"] },
  { name: "GraphQL", folders: ["plugins", "lists", "compiled", "limits", "operations", "schema"] },
  {
    name: "services",
    folders: [
      "tasks",
      "live",
      "backup",
      "imports",
      "monitoring",
      "workflows",
      "drafts",
      "exports",
      "files",
      "notifications",
      "payments",
      "signing",
      "jobs",
      "integrations",
      "webhooks",
      "archives",
      "engines",
      "auth",
      "compute",
    ],
  },
  { name: "providers", folders: ["providers", "pdf"] },
  { name: "database", folders: ["database"] },
  { name: "base", folders: ["admission", "messages", "secrets", "network", "tracing", "base"] },
];

const order = layers.flatMap(({ folders }) => folders);
const layerOf = new Map(layers.flatMap(({ name, folders }) => folders.map((folder) => [folder, name])));

/** `src/http/app.ts` → `http`, `src/server.ts` → `.`. */
const folderOf = (file: string): string => file.split("/").slice(1, -1)[0] ?? ".";

/** Imports of types and values, dynamic imports, and threads. */
const importing = /\b(?:from|import|import\(|new URL\()\s*["'](?<path>\.[^"']*\.ts)["']/g;

/** The files of `src` that a file imports. */
export function importsOf(file: string, text: string): string[] {
  return [...text.matchAll(importing)].map(({ groups }) => join(dirname(file), groups!.path!));
}

/** A finding for each import against the order, and for each folder without a layer. */
export function layerFaults(files: ReadonlyMap<string, string>): string[] {
  const folders = new Set([...files.keys()].map(folderOf));
  const faults = [...folders]
    .filter((folder) => !layerOf.has(folder))
    .map((folder) => `src/${folder} has no layer: list it in src/checks/layers.ts, above what it imports.`);
  for (const [file, text] of files)
    for (const imported of importsOf(file, text)) {
      const [from, to] = [folderOf(file), folderOf(imported)];
      if (from !== to && layerOf.has(from) && layerOf.has(to) && order.indexOf(to) < order.indexOf(from))
        faults.push(
          `${file} (${layerOf.get(from)}) imports ${imported} (${layerOf.get(to)}), which is above it: ` +
            "move the shared part to the lower layer, or pass it as an argument.",
        );
    }
  return faults.toSorted();
}

/** The findings in the repository. */
export async function checkLayers(): Promise<string[]> {
  const files = new Map<string, string>();
  for (const file of await filesBelow("src", /\.ts$/))
    files.set(file, await readFile(join(repository, file), "utf8"));
  return layerFaults(files);
}
