/** The README's first conversation and the banner's commands, run as they are written, against the service as users start it. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { guideBlocks } from "../harness/guide.ts";
import { startService, temporaryFolder, type Service } from "../harness/service.ts";
import { openShell, type Shell } from "../harness/shell.ts";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let service: Service;
let shell: Shell;

beforeAll(async () => {
  folder = await temporaryFolder();
  shell = await openShell();
  service = await startService({ env: { DATA_DIR: folder.path, DEMO: "1" } });
});

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await shell?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

/** The value under a name anywhere in an answer. */
function find(answer: unknown, name: string): string | undefined {
  if (typeof answer !== "object" || answer === null) return undefined;
  for (const [key, value] of Object.entries(answer)) {
    if (key === name && typeof value === "string") return value;
    const found = find(value, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The README writes … for what differs each time. */
function expected(written: unknown): unknown {
  if (written === "…") return expect.any(String);
  if (Array.isArray(written)) return written.map(expected);
  if (typeof written !== "object" || written === null) return written;
  return Object.fromEntries(Object.entries(written).map(([key, value]) => [key, expected(value)]));
}

test("the first conversation goes as the README tells it", async () => {
  const blocks = (await guideBlocks("README.md")).filter(
    ({ heading, language }) => heading === "A first conversation" && ["sh", "json"].includes(language),
  );
  const variables: Record<string, string> = {};
  let answer: any;
  let commands = 0;
  for (const { language, text } of blocks) {
    if (language === "json") {
      const written = JSON.parse(text);
      expect(answer).toMatchObject(expected(written) as object);
      expect(Boolean(answer.errors)).toBe(Boolean(written.errors));
      continue;
    }
    const [, name, value] = /^(\w+)='(.*)'\n$/.exec(text) ?? [];
    if (name === undefined) {
      answer = JSON.parse(await shell.run(text, variables));
      commands++;
      continue;
    }
    const [, member] = /^paste the (\w+) from the answer here$/.exec(value!) ?? [];
    variables[name] = member
      ? find(answer, member)!
      : value!.replace("https://localhost:8443", service.baseUrl);
    expect(variables[name]).not.toBe(undefined);
  }
  expect(commands).toBeGreaterThanOrEqual(9);
  expect(Object.keys(variables)).toEqual(["PLAT", "TOKEN", "LEAD"]);
});

test("the banner names the address and the demo user, and its commands work as they are pasted", async () => {
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

test("everybody of the demo signs in with the password that the README names", async () => {
  const blocks = await guideBlocks("README.md");
  expect(blocks.length).toBeGreaterThan(10);
  for (const name of ["demo", "amir", "mei", "jonas", "sofia"]) {
    const body = JSON.stringify({
      query: `mutation { login(input: { username: "${name}@plat.example", password: "demo-password" }) { token user { email } } }`,
    });
    const answer = await shell.run(
      `curl -sk ${service.baseUrl}/graphql -H 'Content-Type: application/json' -d '${body}'`,
    );
    expect(JSON.parse(answer).data.login.user).toEqual({ email: `${name}@plat.example` });
  }
});
