/**
 * The portal in a real browser, on the service with the demo. WRITE_EXAMPLES=1 records the responses of the examples
 * in docs/examples.json, and SCREENSHOTS=1 the pictures of docs/portal.
 */
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { once } from "node:events";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import PostalMime from "postal-mime";
import { buildSchema, parse, validate } from "postgraphile/graphql";
import type { Page } from "playwright-core";
import { filledVariables, valueAt } from "../../src/http/portal/assets/entries.js";
import { examples } from "../../src/http/portal/examples.ts";
import { openBrowser } from "../harness/browser.ts";
import { testCertificate } from "../harness/certificate.ts";
import { demoFolder } from "../harness/demoFolder.ts";
import { startService, type Service } from "../harness/service.ts";
import { long } from "../harness/seeds.ts";
import { until } from "../harness/until.ts";
import { recordOperations, type Ask } from "./operationExamples.ts";

const repository = join(import.meta.dirname, "../..");
let folder: Awaited<ReturnType<typeof demoFolder>>;
let service: Service;
let opened: Awaited<ReturnType<typeof openBrowser>>;
let page: Page;
let axe: string;

/** Faults of a page: script errors, console errors, violations of the policy, requests to other hosts. */
const complaints: string[] = [];
/** Transferred bytes by URL. */
const received = new Map<string, number>();

async function openPage(options: { width?: number; dark?: boolean } = {}): Promise<Page> {
  const context = await opened.browser.newContext({
    ignoreHTTPSErrors: true,
    locale: "en-GB",
    viewport: { width: options.width ?? 1280, height: 860 },
    colorScheme: options.dark ? "dark" : "light",
    reducedMotion: "reduce",
  });
  const made = await context.newPage();
  made.on("pageerror", (error) => complaints.push(error.message));
  made.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  made.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol.startsWith("http") && origin !== service.baseUrl) complaints.push(request.url());
    // If only registered documents are permitted, everything except for the explorer works the same.
    const isText = request.method() === "POST" && /"query":/.test(request.postData() ?? "");
    if (isText && !made.url().includes("/explorer"))
      complaints.push(`A text was sent: ${request.postData()}`);
  });
  made.on("response", (response) => {
    const length = Number(response.headers()["content-length"] ?? 0);
    received.set(new URL(response.url()).pathname, length);
  });
  await made.addInitScript({
    content: `document.addEventListener("securitypolicyviolation", (event) =>
      console.error("Policy violated: " + event.violatedDirective + " " + event.blockedURI + " " + event.sourceFile + ":" + event.lineNumber + ":" + event.columnNumber));`,
  });
  return made;
}

beforeAll(async () => {
  axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  folder = await demoFolder();
  service = await startService({
    env: { DATA_DIR: folder.path, DEMO: "1", LOOPBACK_WEBHOOKS: "1" },
    withinMs: 200_000,
  });
  opened = await openBrowser();
  page = await openPage();
}, 300_000);
afterAll(async () => {
  await opened?.[Symbol.asyncDispose]();
  await service?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});
// oxlint-disable-next-line jest/no-standalone-expect -- of each test
afterEach(() => expect(complaints.splice(0)).toEqual([]));

/** Asserts that axe finds no violation of any impact, and that nothing is wider than the window. */
async function inspect(shown: Page): Promise<void> {
  await shown.evaluate(axe);
  const { violations } = (await shown.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as {
    violations: { id: string; impact: string; nodes: { html: string; target: unknown[] }[] }[];
  };
  expect(
    violations.map(({ id, impact, nodes }) => [
      id,
      impact,
      nodes.map((node) => `${node.target.join(" ")}: ${node.html.slice(0, 200)}`),
    ]),
  ).toEqual([]);
  const overflow = await shown.evaluate(
    "document.documentElement.scrollWidth - document.documentElement.clientWidth",
  );
  expect(overflow).toBe(0);
}

/** Checks the page in all widths and colour schemes, and writes the picture if requested. */
async function checkPage(shown: Page, name: string): Promise<void> {
  await inspect(shown);
  await shown.setViewportSize({ width: 390, height: 800 });
  await shown.emulateMedia({ colorScheme: "dark" });
  await inspect(shown);
  if (name === "explorer") await picture(shown, `${name}-phone-dark`);
  await shown.setViewportSize({ width: 1280, height: 860 });
  await shown.emulateMedia({ colorScheme: "light" });
  await picture(shown, name);
}
async function picture(shown: Page, name: string): Promise<void> {
  if (!process.env.SCREENSHOTS) return;
  await mkdir(join(repository, "docs/portal"), { recursive: true });
  await shown.evaluate("scrollTo(0, 0)");
  await shown.screenshot({ path: join(repository, "docs/portal", `${name}.png`) });
}

const as = async (shown: Page, name: string) => {
  await shown.goto(`${service.baseUrl}/`);
  await shown.locator("#people").getByRole("button", { name }).click();
  await shown.locator("#account .who").getByText(name).waitFor();
};

const send = async (body: object, token?: string) => {
  const headers: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {};
  const response = await page.request.post(`${service.baseUrl}/graphql`, { headers, data: body });
  return { answer: await response.json(), requestId: response.headers()["x-request-id"] };
};
const post = async (body: object, token?: string) => (await send(body, token)).answer;
async function signIn(username = "demo@plat.example"): Promise<string> {
  const { data } = await post({
    query: `mutation ($input: LoginInput!) { login(input: $input) { token } }`,
    variables: { input: { username, password: "demo-password" } },
  });
  return data.login.token;
}

/** The latest events of the organization, or those after a sequence number. */
const latestEvents = async (token: string, first: number, afterSequence?: string): Promise<any[]> => {
  const query = `query ($first: Int!, $filter: EventsFilter!) { events(first: $first, orderBy: [ID_DESC], filter: $filter) {
    name sequence requestId causedBy { id } } }`;
  const filter = { organizationId: "larkfield-homes", ...(afterSequence && { afterSequence }) };
  return (await post({ query, variables: { first, filter } }, token)).data.events;
};
/** The names of the events that a request itself has written, without those of workflows. */
const eventsOf = async (
  token: string,
  requestId: string | undefined,
  afterSequence?: string,
): Promise<string[]> => {
  const isOwn = (event: any) => event.requestId === requestId && !event.causedBy;
  // Events are numbered after the commit.
  const events = await until(
    async () => (await latestEvents(token, 1000, afterSequence)).filter(isOwn),
    (happened) => happened.length > 0,
  );
  return [...new Set<string>(events.map((event: any) => event.name))].sort();
};

test("the examples are operations of the schema, and their recorded responses are those of the service", async () => {
  const schema = buildSchema(await readFile(join(repository, "schema.graphql"), "utf8"));
  for (const { name, document, needs } of examples)
    for (const text of [document, ...(needs ? [needs.query] : [])])
      expect([name, validate(schema, parse(text))]).toEqual([name, []]);
  const token = await signIn();
  const names = new Map<string, string>();
  const steady = (value: unknown) => JSON.parse(steadyText(JSON.stringify(value), names));
  const recorded: Record<string, unknown> = {};
  for (const { name, document, needs, variables } of examples) {
    const found = needs && (await post({ query: needs.query }, token)).data;
    for (const path of Object.values(needs?.variables ?? {}))
      expect([name, typeof valueAt(found, path)]).toEqual([name, "string"]);
    const values = filledVariables({ variables, needs }, found);
    const [latest] = await latestEvents(token, 1);
    const { answer, requestId } = await send({ query: document, variables: values }, token);
    delete answer.extensions;
    const isChange = document.startsWith("mutation") && !answer.errors;
    const events = isChange ? await eventsOf(token, requestId, latest.sequence) : [];
    recorded[name] = steady({ answer, events });
  }
  const file = join(repository, "docs/examples.json");
  if (process.env.WRITE_EXAMPLES) await writeFile(file, `${JSON.stringify(recorded, null, 2)}\n`);
  expect(recorded).toEqual(JSON.parse(await readFile(file, "utf8")));
});

test("the first page is small, contacts no other host, and shows visitors nothing private", async () => {
  received.clear();
  await page.goto(`${service.baseUrl}/`);
  await page.getByRole("button", { name: "Dana Reyes" }).waitFor();
  await page.waitForLoadState("networkidle");
  const bytes = [...received.values()].reduce((sum, one) => sum + one, 0);
  expect(received.size).toBeGreaterThan(4);
  expect(bytes).toBeLessThan(30_000);
  expect([...received.keys()]).not.toContain("/graphql");
  await page.getByRole("button", { name: "Ask" }).click();
  await page.locator("#answer").getByText("Larkfield Gardens").waitFor();
  await checkPage(page, "home");
});

test("keyboard navigation reaches the content, and enters and leaves the dialog", async () => {
  await page.goto(`${service.baseUrl}/`);
  await page.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  expect(await page.evaluate("document.activeElement.id")).toBe("main");
  await page.getByRole("button", { name: "Sign in", exact: true }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Sign in" });
  await dialog.waitFor();
  await inspect(page);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
});

test("signs in as a demo user with one click, keeps the session over a reload, and ends it at the service", async () => {
  await as(page, "Mei Tanaka");
  await page.reload();
  await page.locator("#account .who").getByText("Mei Tanaka").waitFor();
  expect(await page.getByLabel("Organization").locator("option:checked").textContent()).toBe(
    "Larkfield Homes",
  );
  await page.locator("#account").getByText("member").waitFor();
  const kept = await page.evaluate("JSON.parse(sessionStorage.getItem('plat.session')).token");
  expect(await page.evaluate("localStorage.length + document.cookie.length")).toBe(0);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  expect(await page.evaluate("sessionStorage.getItem('plat.session')")).toBeNull();
  const answer = await page.request.post(`${service.baseUrl}/graphql`, {
    headers: { authorization: `Bearer ${kept}` },
    data: { query: "{ viewer { id } }" },
  });
  expect(answer.status()).toBe(401);
});

test("signs in with an account, and shows the reason of a refusal", async () => {
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Email").fill("sofia@plat.example");
  await dialog.getByLabel("Password").fill("not this one");
  await dialog.getByRole("button", { name: "Sign in" }).click();
  await dialog
    .getByRole("alert")
    .getByText(/password/)
    .waitFor();
  await dialog.getByLabel("Password").fill("demo-password");
  await dialog.getByRole("button", { name: "Sign in" }).click();
  await dialog.waitFor({ state: "detached" });
  expect(await page.locator("#account .who").textContent()).toBe("Sofia Rossi");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in", exact: true }).waitFor();
});

test("the reference can be searched, and shows arguments, errors, states and real responses of an operation", async () => {
  await page.goto(`${service.baseUrl}/reference`);
  await page.getByRole("heading", { name: "Reference", level: 1 }).last().waitFor();
  await page.getByLabel("Search").fill("create hold");
  await page.locator("#list").getByRole("link", { name: "createUnitHold", exact: true }).click();
  const entry = page.locator("#entry");
  await entry.getByRole("heading", { name: "createUnitHold", level: 1 }).waitFor();
  for (const text of ["sale.write", "INVENTORY_UNAVAILABLE", "unit_hold.created"])
    await entry.getByText(text).first().waitFor();
  expect(await entry.getByRole("img", { name: /^States/ }).count()).toBe(1);
  await checkPage(page, "reference");
  for (const [key, text] of [
    ["type.Unit", "allowedTransitions"],
    ["errors", "VERSION_MISMATCH"],
    ["mutation.createContact", "contact.created"],
    ["deprecated", "publicProject"],
  ] as const) {
    await page.evaluate(`location.hash = ${JSON.stringify(key)}`);
    await entry.getByText(text).first().waitFor();
  }
  await inspect(page);
});

test("guides are the documents, and their links stay within the portal", async () => {
  await page.goto(`${service.baseUrl}/guides`);
  await page.getByRole("heading", { name: "Call the API" }).waitFor();
  const links: string[] = await page
    .locator("main a")
    .evaluateAll((all) => all.map((one) => one.getAttribute("href")!.replace(/#.*/, "")));
  const own = [...new Set(links.filter((link) => link.startsWith("/")))];
  expect(own.length).toBeGreaterThan(35);
  for (const path of own) {
    const answer = await page.request.get(`${service.baseUrl}${path}`);
    expect([path, answer.status()]).toEqual([path, 200]);
  }
  await page.getByRole("link", { name: "States", exact: true }).first().click();
  await page.getByRole("heading", { name: "States", level: 1 }).waitFor();
  await checkPage(page, "guide");
  for (const path of [
    "/guides/nothing",
    "/guides/..%2fREADME",
    "/portal/editor.source.js",
    "/portal/constructor",
  ])
    expect([path, (await page.request.get(`${service.baseUrl}${path}`)).status()]).toEqual([path, 404]);
});

test("the explorer completes, runs operations of the signed-in user, shows the cost, and shows events", async () => {
  await as(page, "Dana Reyes");
  await page.goto(`${service.baseUrl}/explorer`);
  await page.locator("#feed-state").getByText("Live").waitFor();
  await page.locator("#document[data-schema=known]").waitFor();
  const editor = page.getByRole("textbox", { name: "Operation" });
  await editor.click();
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.type("query Mine { view");
  await page.getByRole("listbox").getByRole("option", { name: "viewer" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.insertText("query Mine { viewer { fullName } }");
  await page.keyboard.press("ControlOrMeta+Enter");
  await page.locator("#result").getByText("Dana Reyes").waitFor();
  expect(await page.locator("#cost").textContent()).toMatch(/cost \d+ of \d+/);
  await page.locator("#sql-part summary").click();
  expect(await page.locator("#sql-state").textContent()).toMatch(/^1 statement · [\d.]+ ms · rows: 1$/);
  await page.getByLabel("With plans").check();
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByLabel("Plan", { exact: true }).getByText(/cost=/).waitFor();
  await page.locator("#examples summary", { hasText: "Leads" }).click();
  await page.getByRole("button", { name: "A task about a lead" }).click();
  await page
    .getByRole("textbox", { name: "Variables" })
    .getByText(/[0-9a-f]{8}-/)
    .waitFor();
  await page.getByRole("button", { name: "Run" }).click();
  await page.locator("#events").getByText("task.created").waitFor();
  await page.getByText("As code").click();
  await page.getByLabel("Code", { exact: true }).getByText("curl").waitFor();
  await checkPage(page, "explorer");
});

test("a unit that is held in one window is updated in the other", async () => {
  const other = await openPage();
  await as(other, "Mei Tanaka");
  for (const shown of [page, other]) {
    await shown.goto(`${service.baseUrl}/sales-floor`);
    await shown.locator("#live").getByText("Live").waitFor();
  }
  const available = other.locator(".unit.available").first();
  const id = await available.getAttribute("id");
  const [here, there] = [page.locator(`#${id}`), other.locator(`#${id}`)];
  expect(await here.locator(".status").textContent()).toBe("available");
  await there.getByRole("button", { name: /^Hold/ }).click();
  await here.locator(".status").getByText("held").waitFor();
  await there.getByRole("button", { name: /^Release/ }).click();
  await here.locator(".status").getByText("available").waitFor();
  await page.locator("#events").getByText("unit.status_changed").first().waitFor();
  await checkPage(page, "sales-floor");
  await other.context().close();
});

/** The code in the latest mail to a person that matches the pattern. */
const mailed = async (to: string, pattern: RegExp): Promise<string> => {
  const outbox = join(folder.path, "outbox");
  const found = await until(async () => {
    for (const name of (await readdir(outbox)).toSorted().toReversed()) {
      const mail = await PostalMime.parse(await readFile(join(outbox, name)));
      const code = mail.to?.[0]?.address === to && pattern.exec(mail.text ?? "")?.[1];
      if (code) return code;
    }
    return undefined;
  });
  return found!;
};

const askAs =
  (token: string): Ask =>
  async (body) => {
    const { answer, requestId } = await send(body, token);
    return { ...answer, requestId };
  };

/** Accepts all POST requests. */
async function openReceiver(): Promise<AsyncDisposable & { url: string }> {
  const server = createServer(await testCertificate(), (request, response) =>
    request.resume().once("end", () => response.end()),
  );
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await promisify(server.close.bind(server))();
    },
  };
}

test("each operation has an example, and its recorded response is that of the service", async () => {
  const schema = buildSchema(await readFile(join(repository, "schema.graphql"), "utf8"));
  const file = join(repository, "docs/operation-examples.json");
  const isWritten = process.env.WRITE_EXAMPLES !== undefined;
  const token = await signIn();
  await using receiver = await openReceiver();
  const recorded = await recordOperations({
    schema,
    known: isWritten ? undefined : JSON.parse(await readFile(file, "utf8")),
    // PERF: each document must be planned; the long form compares all.
    isChosen: (index) => isWritten || long || index % 8 === 0,
    ask: askAs(token),
    surroundings: {
      as: async (email) => askAs(await signIn(email)),
      mailed,
      receiver: receiver.url,
      eventsOf: (requestId) => eventsOf(token, requestId),
    },
    steady: (value) =>
      JSON.parse(
        steadyText(JSON.stringify(value), new Map()).replaceAll(/"\d{4}-\d\d-\d\d"/g, '"2026-06-01"'),
      ),
  });
  if (isWritten) await writeFile(file, `${JSON.stringify(recorded, null, 2)}\n`);
  const all: typeof recorded = JSON.parse(await readFile(file, "utf8"));
  const roots = [schema.getQueryType()!, schema.getMutationType()!];
  const shown = new Set<string>([...examples, ...all].flatMap(({ about }) => about));
  expect(roots.flatMap((root) => Object.keys(root.getFields())).filter((name) => !shown.has(name))).toEqual(
    [],
  );
  for (const { name, document, needs } of recorded)
    for (const text of [document, ...(needs ? [needs.query] : [])])
      expect([name, validate(schema, parse(text))]).toEqual([name, []]);
  const names = new Set(recorded.map(({ name }) => name));
  expect(recorded).toEqual(all.filter(({ name }) => names.has(name)));
}, 600_000);

/** Replaces ids, times and other values that differ in each run by stable names, equal ones by equal names. */
function steadyText(text: string, names: Map<string, string>): string {
  const stand = (value: string, made: (number: number) => string) => {
    if (!names.has(value)) names.set(value, made(names.size + 1));
    return names.get(value)!;
  };
  return text
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) =>
      stand(id, (number) => `01a1fe10-0000-7000-8000-${String(number).padStart(12, "0")}`),
    )
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)/g, "2026-06-01T09:00:00.000Z")
    .replaceAll(/"(endCursor|sequence|requestId)":"[^"]*"/g, '"$1":"…"')
    .replaceAll(/"key":"[a-z0-9]{12}"/g, '"key":"…"');
}
