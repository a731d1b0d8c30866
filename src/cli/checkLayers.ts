/** Part of `npm run check`: imports go down the layers of `src`, and no folders import each other in a circle. */
import { checkLayers } from "../checks/layers.ts";

const faults = await checkLayers();
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;
