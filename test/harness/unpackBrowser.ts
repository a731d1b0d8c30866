/** Unpacks the Chromium of the npm package into TMPDIR; a process of its own, because the package looks there only. */
import chromium from "@sparticuz/chromium";

console.log(await chromium.executablePath());
