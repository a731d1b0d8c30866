/**
 * One change of a source file in the processes that inherit the environment variable `PLAT_SOURCE_MUTANT`: modules are loaded with the change, and
 * the file itself stays as it is. testProcesses.ts has it imported by every process of a test, and transform.ts does the same for the realms
 * of test files.
 */
import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import { withReplacement, type Replacement } from "./replacement.ts";

/** A change of a file, with its absolute path. */
export interface FileReplacement extends Replacement {
  path: string;
}

const { PLAT_SOURCE_MUTANT: given } = process.env;
export const mutant = given ? (JSON.parse(given) as FileReplacement) : undefined;

if (mutant) {
  const mutated = pathToFileURL(mutant.path).href;
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (url !== mutated) return loaded;
      return { ...loaded, source: withReplacement(String(loaded.source), mutant) };
    },
  });
}
