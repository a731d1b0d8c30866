import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { chromium, type Browser } from "playwright-core";
import { whileLocked } from "./database.ts";

const run = promisify(execFile);
/** Number of the advisory lock that the unpacking process holds. */
const lock = 7_528_000_005n;

/**
 * A real browser. On Linux (x64), it is the Chromium of an npm package, with the libraries that a minimal machine
 * lacks, so that the tests need only `npm ci`; elsewhere, it is the installed Chrome.
 */
export async function openBrowser(): Promise<AsyncDisposable & { browser: Browser }> {
  if (process.platform !== "linux" || process.arch !== "x64") {
    const browser = await chromium.launch({ channel: "chrome" });
    return { browser, [Symbol.asyncDispose]: () => browser.close() };
  }
  const programs = await unpacked();
  const folder = await mkdtemp(join(tmpdir(), "plat-browser-"));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const browser = await chromium.launch({
      executablePath: join(programs, "chromium"),
      // Inside a container there is neither a sandbox nor, often, shared memory.
      args: ["--no-sandbox", "--disable-dev-shm-usage", "--no-zygote", "--disable-gpu"],
      env: {
        PATH: process.env.PATH,
        HOME: folder,
        TMPDIR: folder,
        LD_LIBRARY_PATH: join(programs, "al2023", "lib"),
        FONTCONFIG_FILE: await configureFonts(programs, folder),
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
 * The folder that the browser is unpacked to, once per run, by the first test file that needs it: that takes two
 * seconds of CPU time.
 */
async function unpacked(): Promise<string> {
  const folder = process.env.PLAT_TEST_BROWSER;
  if (!folder) throw new Error("There is no folder for the browser: start the tests through `npm test`.");
  await whileLocked(lock, async () => {
    const isWhole = join(folder, "unpacked");
    if (existsSync(isWhole)) return;
    await run(process.execPath, [join(import.meta.dirname, "unpackBrowser.ts")], {
      // The package unpacks its libraries only if it detects the environment that it was made for.
      env: { PATH: process.env.PATH, TMPDIR: folder, AWS_EXECUTION_ENV: "AWS_Lambda_nodejs22.x" },
    });
    await writeFile(isWhole, "");
  });
  return folder;
}

/**
 * Configures the location of the fonts. `fonts.conf` of the package contains fixed paths outside its folder; without
 * any font, the browser crashes at the first text.
 */
async function configureFonts(programs: string, folder: string): Promise<string> {
  const escaped = (path: string) => path.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const file = join(folder, "fonts.conf");
  await writeFile(
    file,
    `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${escaped(join(programs, "fonts"))}</dir>
  <cachedir>${escaped(join(folder, "fonts-cache"))}</cachedir>
</fontconfig>
`,
  );
  return file;
}
