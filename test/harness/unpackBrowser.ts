/**
 * Unpacks the Chromium of the npm package into TMPDIR. It is a separate process, because the package reads that
 * variable only.
 */
import chromium from "@sparticuz/chromium";

// The tests need no WebGL, which takes time to unpack.
chromium.setGraphicsMode = false;
console.log(await chromium.executablePath());
