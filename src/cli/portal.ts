/**
 * Bundles the editors of the explorer. The bundle is committed, so that `npm start` needs no build. With --check, it
 * only reports whether the bundle is up to date.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

const assets = join(import.meta.dirname, "../http/portal/assets");
const outfile = join(assets, "editor.js");
const isCheck = process.argv.includes("--check");
const { outputFiles } = await build({
  entryPoints: [join(assets, "editor.source.js")],
  outfile,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  legalComments: "none",
  write: !isCheck,
});
const shall = outputFiles?.[0]?.text;
if (isCheck && shall !== (await readFile(outfile, "utf8").catch(() => ""))) {
  console.error("src/http/portal/assets/editor.js is out of date with its source: run `npm run portal`.");
  process.exitCode = 1;
}
