/** The explorer page as its users meet it: in a real browser, on the service as it is started, with the demo. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Page } from "playwright-core";
import { openBrowser } from "../harness/browser.ts";
import { demoFolder } from "../harness/demoFolder.ts";
import { startService, type Service } from "../harness/service.ts";

let folder: Awaited<ReturnType<typeof demoFolder>>;
let service: Service;
let opened: Awaited<ReturnType<typeof openBrowser>>;
let page: Page;

/** What went wrong in the page: errors of scripts, of the console, violations of the policy, requests elsewhere. */
const complaints: string[] = [];

beforeAll(async () => {
  folder = await demoFolder();
  service = await startService({ env: { DATA_DIR: folder.path, DEMO: "1" } });
  opened = await openBrowser();
  const context = await opened.browser.newContext({ ignoreHTTPSErrors: true, locale: "en-GB" });
  page = await context.newPage();
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol.startsWith("http") && origin !== service.baseUrl) complaints.push(request.url());
  });
  page.on("requestfailed", (request) => complaints.push(`${request.url()} ${request.failure()?.errorText}`));
  await page.addInitScript({
    content: `document.addEventListener("securitypolicyviolation", (event) =>
      console.error("Policy violated: " + event.violatedDirective + " " + event.blockedURI));`,
  });
}, 120_000);

afterAll(async () => {
  await opened?.[Symbol.asyncDispose]();
  await service?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

/** Runs one of the operations of the document, and gives the answer that the server sent to the page. */
async function execute(operation: string): Promise<any> {
  await page.getByRole("button", { name: /^Execute query/ }).click();
  const answered = page.waitForResponse(
    (response) => response.request().postDataJSON()?.operationName === operation,
  );
  await page.getByRole("menuitem", { name: operation }).click();
  return (await answered).json();
}

const editor = (name: "response" | "request-headers") => page.locator(`.monaco-editor[data-uri*="${name}"]`);

test("opens with examples, and runs the first without a token", async () => {
  await page.goto(`${service.baseUrl}/`);
  await page.getByText("query PublicProjects").waitFor();
  const { data } = await execute("PublicProjects");
  expect(data.publicProjects.map(({ title }: { title: string }) => title).sort()).toEqual([
    "Larkfield Gardens",
    "Mill Creek Towns",
  ]);
  await editor("response").getByText("Larkfield Gardens").waitFor();
  expect(complaints).toEqual([]);
});

test("signs in as the user of the demo and asks as that user", async () => {
  const { data: before } = await execute("Me");
  expect(before.viewer).toBeNull();
  const { data } = await execute("SignIn");
  expect(data.login.token).toMatch(/^ey/);
  await editor("request-headers").click();
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.insertText(JSON.stringify({ Authorization: `Bearer ${data.login.token}` }));
  // The editor has closed brackets and quotes by itself, behind the caret.
  await page.keyboard.press("ControlOrMeta+Shift+End");
  await page.keyboard.press("Delete");
  const { data: me } = await execute("Me");
  expect(me.viewer).toEqual({
    fullName: "Dana Reyes",
    organizations: [{ role: "OWNER", organization: { name: "Larkfield Homes" } }],
  });
  await editor("response").getByText("Dana Reyes").waitFor();
  const { data: leads } = await execute("NewLeads");
  expect(leads.leads.length).toBeGreaterThan(5);
  expect(complaints).toEqual([]);
});

test("shows the documentation of the schema", async () => {
  await page.getByRole("button", { name: "Show Documentation Explorer" }).click();
  await page.getByRole("link", { name: "Query" }).first().click();
  await page.getByText("publicProjects", { exact: true }).first().waitFor();
  expect(complaints).toEqual([]);
});
