/** The transform of test/harness/strip-types.cjs, with the change of this process. */
import { createHash } from "node:crypto";
import { stripTypeScriptTypes } from "node:module";
import { mutant } from "./mutant.ts";
import { withReplacement } from "./replacement.ts";

const changed = (source: string, path: string): string =>
  path === mutant?.path ? withReplacement(source, mutant) : source;

export default {
  process: (source: string, path: string): { code: string } => ({
    code: stripTypeScriptTypes(changed(source, path), { mode: "strip" }),
  }),
  getCacheKey: (source: string, path: string): string =>
    createHash("sha256")
      .update(`${process.version}\0${path}\0${changed(source, path)}`)
      .digest("hex"),
};
