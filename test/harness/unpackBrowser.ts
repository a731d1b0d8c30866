/** Unpacks the Chromium of the npm package into TMPDIR; a process of its own, because the package looks there only. */
import chromium from "@sparticuz/chromium";

// Nothing that the tests look at is drawn by it, and it takes a while to unpack.
chromium.setGraphicsMode = false;
console.log(await chromium.executablePath());
