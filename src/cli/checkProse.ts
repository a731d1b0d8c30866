/** Part of `npm run check`: documents and descriptions use the terms of the field; see the glossary in CONTRIBUTING.md. */
import { checkProse } from "../checks/prose.ts";

const faults = await checkProse();
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;
