/**
 * The README's first queries, the tutorial and the banner's commands, executed as written against the service as
 * users start it.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { guideBlocks } from "../harness/guide.ts";
import { startService, migratedFolder, type Service } from "../harness/service.ts";
import { openShell, type Shell } from "../harness/shell.ts";

let folder: Awaited<ReturnType<typeof migratedFolder>>;
let service: Service;
let shell: Shell;

beforeAll(async () => {
  folder = await migratedFolder();
  shell = await openShell();
  service = await startService({ env: { DATA_DIR: folder.path, DEMO: "1" } });
});

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await shell?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

/** The value of a field with this name anywhere in a response. */
function find(answer: unknown, name: string): string | undefined {
  if (typeof answer !== "object" || answer === null) return undefined;
  for (const [key, value] of Object.entries(answer)) {
    if (key === name && typeof value === "string") return value;
    const found = find(value, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The response with … for values that the document writes so, because they differ each time. */
function masked(answer: any, written: any): unknown {
  if (written === "…" && typeof answer === "string") return "…";
  if (Array.isArray(answer)) return answer.map((item, index) => masked(item, written?.[index]));
  if (typeof answer !== "object" || answer === null) return answer;
  return Object.fromEntries(
    Object.entries(answer).map(([key, value]) => [key, masked(value, written?.[key])]),
  );
}

interface Exchange {
  answer: any;
  /** As the document shows it. */
  written: any;
}

/** Follows the instructions of a document: sets the variables, executes the commands. */
async function converse(
  file: string,
  section: string,
): Promise<{ exchanges: Exchange[]; variables: Record<string, string> }> {
  const exchanges: Exchange[] = [];
  const variables: Record<string, string> = {};
  for (const { heading, language, text } of await guideBlocks(file)) {
    if (heading !== section) continue;
    const answer = exchanges.at(-1)?.answer;
    const [, name, value] = /^(\w+)='(.*)'\n$/.exec(text) ?? [];
    const [, member] = /^paste the (\w+) from the answer here$/.exec(value ?? "") ?? [];
    if (language === "json") exchanges.at(-1)!.written = JSON.parse(text);
    else if (member) variables[name!] = find(answer, member)!;
    else if (name) variables[name] = value!.replace("https://localhost:8443", service.baseUrl);
    else exchanges.push({ answer: JSON.parse(await shell.run(text, variables)), written: undefined });
  }
  return { exchanges, variables };
}

test.each([
  ["README.md", "First queries", 3, ["PLAT", "TOKEN"]],
  ["docs/first-conversation.md", "A first conversation", 9, ["PLAT", "TOKEN", "LEAD"]],
])("the commands of %s have the documented results", async (file, section, length, names) => {
  const { exchanges, variables } = await converse(file, section);
  expect(exchanges.length).toBeGreaterThanOrEqual(length);
  for (const { answer, written } of exchanges) {
    expect(masked(answer, written)).toMatchObject(written);
    expect(Boolean(answer.errors)).toBe(Boolean(written.errors));
  }
  expect(Object.keys(variables)).toEqual(names);
});

test("the banner contains the address and the demo user, and its commands work as they are pasted", async () => {
  const banner = await service.banner();
  expect(banner).toContain(`${service.baseUrl}/graphql`);
  expect(banner).toContain("demo@plat.example, password demo-password");
  const [publicly, ...signedIn] = banner.split("\n").filter((line) => line.includes("curl"));
  expect(JSON.parse(await shell.run(publicly!)).data.publicProjects).toContainEqual({
    title: "Larkfield Gardens",
    status: "SELLING",
  });
  expect(signedIn).toHaveLength(2);
  expect(JSON.parse(await shell.run(signedIn.join("\n"))).data.leads).toHaveLength(5);
});

test("everybody of the demo can sign in with the password in the README", async () => {
  const readme = await readFile(join(import.meta.dirname, "../../README.md"), "utf8");
  for (const name of ["demo", "amir", "mei", "jonas", "sofia", "laura"]) {
    expect(readme).toContain(`\`${name}@plat.example\``);
    const body = JSON.stringify({
      query: `mutation { login(input: { username: "${name}@plat.example", password: "demo-password" }) { token user { email } } }`,
    });
    const answer = await shell.run(
      `curl -sk ${service.baseUrl}/graphql -H 'Content-Type: application/json' -d '${body}'`,
    );
    expect(JSON.parse(answer).data.login.user).toEqual({ email: `${name}@plat.example` });
  }
});
