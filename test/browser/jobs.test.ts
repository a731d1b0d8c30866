/** The job page in a real browser, on the service as operators start it. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { Pool } from "pg";
import type { Page } from "playwright-core";
import { embeddedUrl } from "../../src/database/embeddedServer.ts";
import { postmasterPort } from "../../src/database/postmaster.ts";
import { guideBlocks } from "../harness/guide.ts";
import { openShell, type Shell } from "../harness/shell.ts";
import { openBrowser } from "../harness/browser.ts";
import { migratedFolder, startService, type Service } from "../harness/service.ts";
import { password, signUp } from "../harness/signUp.ts";
import { until } from "../harness/until.ts";

let folder: Awaited<ReturnType<typeof migratedFolder>>;
let service: Service;
let opened: Awaited<ReturnType<typeof openBrowser>>;
let page: Page;
let owner: Pool;
let operator: string;
let stranger: string;
let shell: Shell;
const complaints: string[] = [];

/** Runs the command of the operators' guide that matches the pattern, for the operator of this test. */
async function guided(form: RegExp): Promise<string> {
  const commands = (await guideBlocks("docs/operating.md"))
    .filter(({ heading, language }) => heading === "Jobs" && language === "sh")
    .flatMap(({ text }) => text.trim().split("\n"));
  const command = commands.find((found) => form.test(found))!;
  return shell.run(
    `cd '${join(import.meta.dirname, "../..")}'; ${command.replace("ops@example.com", operator)}`,
    {
      DATA_DIR: folder.path,
    },
  );
}

beforeAll(async () => {
  folder = await migratedFolder();
  service = await startService({ env: { DATA_DIR: folder.path } });
  const port = postmasterPort(await realpath(join(folder.path, "postgres", "data")))!;
  owner = new Pool({ connectionString: await embeddedUrl(folder.path, port), max: 2 });
  owner.on("error", () => {});
  operator = (await signUp(owner, "Opal Operator", () => "")).email;
  stranger = (await signUp(owner, "Sam Stranger", () => "")).email;
  shell = await openShell();
  await guided(/ add /);
  opened = await openBrowser();
  const context = await opened.browser.newContext({ ignoreHTTPSErrors: true, locale: "en-GB" });
  page = await context.newPage();
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
});
afterAll(async () => {
  await shell?.[Symbol.asyncDispose]();
  await opened?.[Symbol.asyncDispose]();
  await owner?.end();
  await service?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

async function signIn(email: string): Promise<void> {
  await page.goto(`${service.baseUrl}/jobs`);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
}
const message = (text: string | RegExp) => page.getByRole("status").filter({ hasText: text }).waitFor();
const failed = async () =>
  (
    await owner.query(
      "select count(*)::int as amount from graphile_worker._private_jobs where attempts >= max_attempts",
    )
  ).rows[0].amount as number;

test("refuses users who are neither operators nor owners", async () => {
  await signIn(stranger);
  await message("Jobs are for operators");
  expect(await page.getByRole("main").isVisible()).toBe(false);
});

test("an operator pauses a task, finds failed jobs, discards one and retries the rest", async () => {
  await signIn(operator);
  const task = page.getByRole("row").filter({ hasText: "webhook__disabled" }).first();
  await task.getByRole("button", { name: "Pause" }).click();
  await task.getByRole("button", { name: "Resume" }).waitFor();
  // Arguments are shown as text, whatever they contain.
  await owner.query(
    `select graphile_worker.add_job('webhook__disabled', payload => json_build_object('id', '<b id=injected>' || n), run_at => now() + interval '1 h')
     from generate_series(1, 3) n`,
  );
  await owner.query(
    "update graphile_worker._private_jobs set attempts = max_attempts, last_error = 'No answer.' where run_at > now() + interval '50 min'",
  );
  await page.getByLabel("State").selectOption("FAILED");
  await page.getByRole("button", { name: "Show" }).click();
  const boxes = page.getByRole("checkbox", { name: /^Job \d+$/ });
  await until(
    () => boxes.count(),
    (amount) => amount === 3,
  );
  expect(await page.locator("#injected").count()).toBe(0);
  await boxes.first().check();
  await page.getByRole("button", { name: "Discard" }).click();
  await message("1 jobs were changed.");
  expect(await failed()).toBe(2);
  await page.getByLabel("all that match").check();
  await page.getByRole("button", { name: "Retry" }).click();
  await message("2 jobs were changed.");
  expect(await failed()).toBe(0);
  // No worker takes them while the task is paused; then one does.
  const waiting = () =>
    owner.query(
      "select from graphile_worker.jobs where task_identifier = 'webhook__disabled' and attempts = 0 and locked_at is null",
    );
  await owner.query("select graphile_worker.add_job('idempotency_keys__sweep', job_key => 'after')");
  await until(
    () => owner.query("select from graphile_worker.jobs where key = 'after'"),
    ({ rowCount }) => rowCount === 0,
  );
  expect((await waiting()).rowCount).toBe(2);
  await task.getByRole("button", { name: "Resume" }).click();
  await until(waiting, ({ rowCount }) => rowCount === 0);
  expect(complaints).toEqual([]);
});

test("the page has no inline script or style, and its policy allows none", async () => {
  const answer = await page.request.get(`${service.baseUrl}/jobs`);
  expect(answer.headers()["content-security-policy"]).toMatch(/script-src 'self';.*frame-ancestors 'none'/);
  expect(answer.headers()["content-security-policy"]).not.toMatch(/unsafe|sha256/);
  const text = await answer.text();
  expect(text).not.toMatch(/<script(?![^>]*src=)|<style|\son\w+=/);
  const { rows } = await owner.query("select value from app_public.job_state_values");
  const states = [...text.matchAll(/<option>(\w+)<\/option>/g)].map(([, state]) => state);
  expect(states.toSorted()).toEqual(rows.map(({ value }) => value).toSorted());
});

test("the owner of the database appoints and removes operators", async () => {
  expect(await guided(/operators$/)).toContain(operator);
  expect(await guided(/ remove /)).toContain(`${operator} is no operator any more.`);
  await signIn(operator);
  await message("Jobs are for operators");
});
