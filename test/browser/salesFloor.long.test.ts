/**
 * The application of examples/sales-floor in a real browser, started as its README describes, on the service with the
 * demo: `npm run test:long -- test/browser/salesFloor`. Its packages are installed by this test only. SCREENSHOTS=1
 * writes its picture.
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import type { Page } from "playwright-core";
import { build } from "../../packages/client/scripts/build.ts";
import { openBrowser } from "../harness/browser.ts";
import { startChild } from "../harness/child.ts";
import { migratedFolder, startService, type Service } from "../harness/service.ts";
import { until } from "../harness/until.ts";

const run = promisify(execFile);
const repository = join(import.meta.dirname, "../..");
const application = join(repository, "examples/sales-floor");
let folder: Awaited<ReturnType<typeof migratedFolder>>;
let service: Service;
let opened: Awaited<ReturnType<typeof openBrowser>>;
let address: string;
let axe: string;
/** Errors of scripts and of the console. */
const complaints: string[] = [];

const npm = (...args: string[]) => run("npm", args, { cwd: application, maxBuffer: 10_000_000 });

beforeAll(async () => {
  await Promise.all([
    build(join(repository, "packages/client/dist")),
    npm("ci", "--no-audit", "--no-fund"),
    (async () => {
      // The service loads the demo itself, with its payments.
      folder = await migratedFolder();
      service = await startService({ env: { DATA_DIR: folder.path, DEMO: "1" } });
    })(),
  ]);
  const vite = startChild(["node_modules/vite/bin/vite.js", "--port", "0", "--host", "127.0.0.1"], {
    cwd: application,
    env: { PATH: process.env.PATH, PLAT_URL: service.baseUrl, NO_COLOR: "1" },
  });
  let output = "";
  vite.stdout!.on("data", (text) => (output += String(text)));
  vite.stderr!.on("data", (text) => (output += String(text)));
  void once(vite, "exit").then(() => (output += "It ended."));
  const found = await until(
    () => output.match(/http:\/\/127\.0\.0\.1:\d+|It ended/)?.[0],
    (one) => one,
  );
  if (found === "It ended") throw new Error(output);
  address = found!;
  opened = await openBrowser();
  axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
}, 300_000);
afterAll(async () => {
  await opened?.[Symbol.asyncDispose]();
  await service?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});
// oxlint-disable-next-line jest/no-standalone-expect -- of each test
afterEach(() => expect(complaints.splice(0)).toEqual([]));

/** A window in which a person of the demo has signed in. */
async function windowOf(name: string): Promise<Page> {
  const context = await opened.browser.newContext({ ignoreHTTPSErrors: true, locale: "en-CA" });
  const page = await context.newPage();
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    // Refusals are shown to the user; the browser logs them as well.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
      complaints.push(message.text());
  });
  await page.goto(address);
  await page.getByRole("button", { name, exact: true }).click();
  await page.getByRole("button", { name, exact: true, pressed: true }).waitFor();
  return page;
}
const live = (page: Page) => page.getByRole("status").getByText("Live", { exact: true }).waitFor();
const available = '.units [data-status="AVAILABLE"]';
const unit = (page: Page, title: string) => page.locator(`[data-unit="${title}"]`);

test("its types are those of the schema, and it can be built", async () => {
  const { stdout } = await npm("run", "build");
  expect(stdout).toMatch(/built in/);
}, 120_000);

test("a unit that is held in one window is updated in the other, and a reservation is paid", async () => {
  const [mei, dana] = await Promise.all([windowOf("Mei Tanaka"), windowOf("Dana Reyes")]);
  await Promise.all([live(mei), live(dana)]);
  const title = (await mei.locator(available).first().getAttribute("data-unit"))!;
  await mei.getByRole("button", { name: `Hold ${title}` }).click();
  await unit(dana, title).getByText("Held by Mei Tanaka").waitFor();
  await mei.getByRole("button", { name: `Release ${title}` }).click();
  await dana.getByRole("button", { name: `Reserve ${title}` }).click();
  await unit(mei, title)
    .getByText(/^Fee of .*5,000 due$/)
    .waitFor();
  // She is a seller without permission for payments.
  expect(await unit(mei, title).getByRole("button").allTextContents()).toEqual([]);

  const payment = unit(dana, title);
  await payment.getByLabel("Card").selectOption("Visa that the bank refuses");
  await payment.getByRole("button", { name: `Pay the fee of ${title}` }).click();
  await payment.getByRole("alert").getByText("The bank refused the payment.").waitFor();
  await payment.getByLabel("Card").selectOption("Visa that the bank asks about");
  await payment.getByRole("button", { name: `Pay the fee of ${title}` }).click();
  const bank = dana.context().waitForEvent("page");
  await payment.getByRole("link", { name: "Confirm with the bank" }).click();
  await (await bank).getByRole("button", { name: "Complete" }).click();
  await Promise.all([mei, dana].map((page) => unit(page, title).getByText("Fee paid").waitFor()));
  if (process.env.SCREENSHOTS) {
    await dana.setViewportSize({ width: 1100, height: 640 });
    await dana.screenshot({ path: join(application, "picture.png") });
  }
  for (const page of [mei, dana]) await page.context().close();
}, 120_000);

test("a visitor sees public data and cannot change anything; a session survives a reload", async () => {
  const page = await windowOf("Laura Bianchi");
  await page.getByRole("status").getByText("Not live").waitFor();
  await page.locator(available).first().waitFor();
  expect(await page.locator(".units button").count()).toBe(0);
  await page.reload();
  await page.getByRole("button", { name: "Laura Bianchi", pressed: true }).waitFor();
  await page.locator(available).first().waitFor();
  await page.evaluate(axe);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    const { violations } = (await page.evaluate("axe.run(document)")) as { violations: unknown[] };
    expect(violations).toEqual([]);
  }
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Laura Bianchi", pressed: false }).waitFor();
  await page.context().close();
}, 60_000);
