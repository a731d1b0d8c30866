import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { chromium, type Browser } from "playwright-core";

const run = promisify(execFile);

/**
 * A real browser. On Linux (x64) the Chromium that comes as an npm package, with the libraries that a bare machine
 * lacks, so that the tests need nothing but `npm ci`; elsewhere the Chrome that is installed.
 */
export async function openBrowser(): Promise<AsyncDisposable & { browser: Browser }> {
  if (process.platform !== "linux" || process.arch !== "x64") {
    const browser = await chromium.launch({ channel: "chrome" });
    return { browser, [Symbol.asyncDispose]: () => browser.close() };
  }
  const folder = await mkdtemp(join(tmpdir(), "plat-browser-"));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const { stdout } = await run(process.execPath, [join(import.meta.dirname, "unpackBrowser.ts")], {
      // The package unpacks its libraries only where it takes itself to be in the place that it was made for.
      env: { PATH: process.env.PATH, TMPDIR: folder, AWS_EXECUTION_ENV: "AWS_Lambda_nodejs22.x" },
    });
    const browser = await chromium.launch({
      executablePath: stdout.trim(),
      // Inside a container there is neither a sandbox nor, often, shared memory.
      args: ["--no-sandbox", "--disable-dev-shm-usage", "--no-zygote", "--disable-gpu"],
      env: {
        PATH: process.env.PATH,
        HOME: folder,
        TMPDIR: folder,
        LD_LIBRARY_PATH: join(folder, "al2023", "lib"),
        FONTCONFIG_FILE: await configureFonts(folder),
      },
    });
    return {
      browser,
      [Symbol.asyncDispose]: async () => {
        await browser.close();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/**
 * Tells the browser where its fonts lie. The package's own `fonts.conf` names fixed places outside the folder it is unpacked to;
 * without any font the browser dies at the first text.
 */
async function configureFonts(folder: string): Promise<string> {
  const path = (name: string) => join(folder, name).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const file = join(folder, "fonts.conf");
  await writeFile(
    file,
    `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${path("fonts")}</dir>
  <cachedir>${path("fonts-cache")}</cachedir>
</fontconfig>
`,
  );
  return file;
}
