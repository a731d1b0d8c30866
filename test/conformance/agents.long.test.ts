/**
 * The conformance suite of the Model Context Protocol against /mcp: `npm run test:conformance`, which installs it. It
 * runs the scenarios for servers with tools; the others require the tools, resources and prompts of the suite's own
 * example server.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { installPackagesOf } from "../harness/optionalPackages.ts";
import { startPlainProxy } from "../harness/plainProxy.ts";
import { startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { mutationOf } from "../harness/records.ts";

const suite = join(import.meta.dirname, "node_modules/@modelcontextprotocol/conformance/dist/index.js");

/** Scenarios for every server, each with the checks that require more than a server with tools only has. */
const applicable: Record<string, readonly string[]> = {
  "server-initialize": [],
  "server-session-lifecycle": [],
  // Diagnostic tools of the example server, and notifications, which a server with a constant list of tools
  // does not send.
  "server-stateless": [
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
    "sep-2575-server-sends-subscription-ack",
    "sep-2575-server-tags-subscription-id",
  ],
  ping: [],
  "tools-list": [],
  "server-sse-multiple-streams": [],
  "dns-rebinding-protection": [],
  // Lists of prompts and resources.
  caching: [
    "sep-2549-prompts-list-caching-hints",
    "sep-2549-resources-list-caching-hints",
    "sep-2549-resources-templates-list-caching-hints",
  ],
  "http-header-validation": [],
  "input-required-result-unsupported-methods": [],
  "input-required-result-validate-input": [],
};

/**
 * Requirements of the other scenarios: certain tools, prompts and resources, logging, completion, headers for
 * arguments, elicitation, or an extension.
 */
const ofExampleServer =
  /^(tools-call-|resources-|prompts-|logging-|completion-|elicitation-|input-required-|json-schema-2020-12$|http-custom-header-|server-sse-polling$|sep-2164-|sep-2640-|tasks-)/;

let world: Portfolio;
let proxy: Awaited<ReturnType<typeof startPlainProxy>>;
let folder: string;

beforeAll(async () => {
  await installPackagesOf(import.meta.dirname);
  folder = await mkdtemp(join(tmpdir(), "plat-conformance-"));
  world = await startPortfolio();
  const { createAccessToken } = await world.owen.get(mutationOf("createAccessToken", "{ token }"), {
    input: { name: "Agent", audience: "MCP" },
  });
  proxy = await startPlainProxy(world.url, { authorization: `Bearer ${createAccessToken.token}` });
}, 600_000);
afterAll(async () => {
  await proxy?.close();
  await world?.stop();
  await rm(folder, { recursive: true, force: true });
});

const run = async (...args: string[]): Promise<string> =>
  // The command fails if a check fails.
  (await promisify(execFile)(process.execPath, [suite, ...args]).catch((error: { stdout: string }) => error))
    .stdout;

/** The scenarios of the suite, with the latest revision of the protocol that each supports. */
async function scenarios(): Promise<Map<string, string>> {
  const listed = (await run("list", "--server")).matchAll(/- (\S+) \[(?:.*,)?(\S+)\]/g);
  return new Map([...listed].map(([, name, revision]) => [name!, revision!]));
}

interface Check {
  id: string;
  status: "SUCCESS" | "FAILURE" | "WARNING" | "INFO" | "SKIPPED";
}

async function checksOf(scenario: string, revision: string): Promise<Check[]> {
  const out = join(folder, scenario);
  await run(
    "server",
    "--url",
    `${proxy.url}/mcp`,
    "--scenario",
    scenario,
    "--spec-version",
    revision,
    "-o",
    out,
  );
  const files = (await readdir(out, { recursive: true })).filter((file) => file.endsWith("checks.json"));
  const found = await Promise.all(
    files.map(async (file) => JSON.parse(await readFile(join(out, file), "utf8"))),
  );
  return found.flat() as Check[];
}

test("each scenario of the suite is for every server, or for its example server", async () => {
  const names = [...(await scenarios()).keys()];
  expect(names.filter((name) => !(name in applicable) && !ofExampleServer.test(name))).toEqual([]);
  expect(names).toEqual(expect.arrayContaining(Object.keys(applicable)));
});

test("the scenarios for every server pass", async () => {
  const revisions = await scenarios();
  const failed: Record<string, string[]> = {};
  let passed = 0;
  for (const name of Object.keys(applicable)) {
    const checks = await checksOf(name, revisions.get(name)!);
    passed += checks.filter(({ status }) => status === "SUCCESS").length;
    failed[name] = checks
      .filter(({ status }) => status === "FAILURE" || status === "WARNING")
      .map(({ id }) => id);
  }
  expect(failed).toEqual(applicable);
  expect(passed).toBeGreaterThan(30);
}, 600_000);
