import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { chromium, type Browser } from "playwright-core";
import { whileLocked } from "./database.ts";

const run = promisify(execFile);
/** Held by the process that unpacks it. */
const lock = 7_528_000_005n;

/**
 * A real browser. On Linux (x64) the Chromium that comes as an npm package, with the libraries that a bare machine
 * lacks, so that the tests need nothing but `npm ci`; elsewhere the Chrome that is installed.
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

/** The folder of the run that it is unpacked to, by the first test file that asks for it: that takes two seconds of a processor. */
async function unpacked(): Promise<string> {
  const folder = process.env.PLAT_TEST_BROWSER;
  if (!folder) throw new Error("There is no folder for the browser: start the tests through `npm test`.");
  await whileLocked(lock, async () => {
    const isWhole = join(folder, "unpacked");
    if (existsSync(isWhole)) return;
    await run(process.execPath, [join(import.meta.dirname, "unpackBrowser.ts")], {
      // The package unpacks its libraries only where it takes itself to be in the place that it was made for.
      env: { PATH: process.env.PATH, TMPDIR: folder, AWS_EXECUTION_ENV: "AWS_Lambda_nodejs22.x" },
    });
    await writeFile(isWhole, "");
  });
  return folder;
}

/**
 * Tells the browser where its fonts lie. The package's own `fonts.conf` names fixed places outside the folder it is unpacked to;
 * without any font the browser dies at the first text.
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
