/** Part of `npm run check`: schema.graphql follows the rules of graphql-eslint, except for the waivers in src/checks/graphqlRules.ts. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { checkGraphqlRules } from "../checks/graphqlRules.ts";
import { repository } from "../checks/sources.ts";

const faults = checkGraphqlRules(await readFile(join(repository, "schema.graphql"), "utf8"));
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;
