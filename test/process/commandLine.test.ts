/** The command line of the client package, as installed, against the service: its guide, streams, and exit codes. */
import { execFile, type ExecFileException } from "node:child_process";
import { mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { verifyWebhook } from "../../packages/client/src/index.ts";
import { builtClient } from "../client/built.ts";
import { demoFolder } from "../harness/demoFolder.ts";
import { guideBlocks } from "../harness/guide.ts";
import { type Service, startService } from "../harness/service.ts";
import { openShell } from "../harness/shell.ts";

const repository = resolve(import.meta.dirname, "../..");
let data: Awaited<ReturnType<typeof demoFolder>>;
let service: Service;
/** Where the package is installed, and the home of its user. */
let folder: string;
let program: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "plat-command-"));
  const [own, client] = await Promise.all([demoFolder(), builtClient(folder)]);
  data = own;
  program = join(client, "dist/cli/plat.js");
  await symlink(join(repository, "node_modules/graphql"), join(folder, "node_modules/graphql"));
  service = await startService({ env: { DATA_DIR: data.path } });
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await data[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs `plat` until it exits. */
async function plat(
  args: string[],
  { env = {}, input = "" }: { env?: object; input?: string } = {},
): Promise<Ended> {
  const options = { cwd: folder, env: { PATH: process.env.PATH, HOME: folder, ...env } };
  const running = promisify(execFile)(process.execPath, [program, ...args], options);
  running.child.stdin!.end(input);
  return running.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout = "", stderr = "" }: ExecFileException) => ({ code: Number(code), stdout, stderr }),
  );
}

const signIn = () =>
  plat(["login", service.baseUrl, "--trust", "-u", "demo@plat.example", "--password-stdin"], {
    input: "demo-password\n",
  });

test("the commands of its guide work as described", async () => {
  const blocks = (await guideBlocks("docs/command-line.md")).filter(({ language }) => language === "sh");
  const script = blocks
    .map(({ heading, text: commands }) => `printf '\\n# ${heading}\\n'\n${commands}`)
    .join("")
    .replaceAll("https://localhost:8443", service.baseUrl);
  await using shell = await openShell();
  const output = await shell.run(
    `cd '${folder}'; plat() { '${process.execPath}' '${program}' "$@"; }\n${script}`,
    { HOME: folder },
  );
  const of = Object.fromEntries(
    output.split(/^# /m).map((part) => [part.split("\n")[0]!, part.slice(part.indexOf("\n") + 1)]),
  );
  expect(of["Sign in"]).toMatch(/^Dana Reyes \(demo\) at https:.*\n\* larkfield-homes {2}OWNER/);
  expect(
    of["Query"]!.trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toEqual([
    { projects: [expect.anything(), expect.anything()] },
    { project: { title: "Larkfield Gardens", status: "SELLING" } },
    { createLead: { id: expect.any(String) } },
  ]);
  expect(of["Follow events"]).toMatch(/^lead\.created: createLead of .*\n +\d+ {2}\S+Z? {2}lead\.created /);
  expect(of["Import and export"]).toMatch(
    /^1 created, 0 updated, 0 skipped, 0 refused; nothing was kept\.\nlarkfield\.zip, \d+ rows\n/,
  );
  expect((await readFile(join(folder, "larkfield.zip"))).subarray(0, 2).toString()).toBe("PK");
  expect(of["Find out why"]).toMatch(/live events +ok/);
  expect(of["Find out why"]).not.toContain("wrong");
  expect(of["Find out why"]).toMatch(/0 changed\.\n/);
  expect(of["Keep up with the schema"]!.trim()).toBe("");
  expect((await stat(join(folder, ".config/plat/profiles.json"))).mode & 0o777).toBe(0o600);
});

test("a receiver gets events as webhooks, again after a failure, and past ones", async () => {
  await signIn();
  const got: { request: IncomingMessage; body: string }[] = [];
  const receiver = createServer(async (request, response) => {
    got.push({ request, body: await text(request) });
    response.writeHead(got.length === 1 ? 500 : 204).end();
  });
  await new Promise<void>((open) => receiver.listen(0, "127.0.0.1", open));
  try {
    const { port } = receiver.address() as AddressInfo;
    const secret = `whsec_${Buffer.from("a secret of the receiver here").toString("base64")}`;
    const { stdout: created } = await plat([
      "trigger",
      "lead.created",
      "--project",
      "larkfield-gardens",
      "--json",
    ]);
    const { id } = JSON.parse(created).createLead;
    const ended = await plat(
      [
        "webhook",
        "listen",
        "--forward-to",
        `127.0.0.1:${port}/hook`,
        "--since",
        "0",
        "--subject",
        id,
        "--count",
        "1",
        "lead.*",
      ],
      { env: { PLAT_WEBHOOK_SECRET: secret } },
    );
    expect(ended).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/HTTP 500.*\n.*HTTP 204.*attempt 2/),
    });
    expect(got).toHaveLength(2);
    const { request, body } = got[1]!;
    expect(request.url).toBe("/hook");
    expect(await verifyWebhook(body, request.headers, secret)).toMatchObject({
      type: "lead.created",
      subjectId: id,
    });
    await expect(verifyWebhook(`${body} `, request.headers, secret)).rejects.toThrow(
      "The signature is not one of this webhook.",
    );
  } finally {
    receiver.close();
  }
});

test("it exits with a code, reports errors on standard error, and has no secrets in its arguments", async () => {
  const nobody = { XDG_CONFIG_HOME: join(folder, "empty"), PLAT_URL: service.baseUrl };
  const certificate = join(data.path, "certificate.pem");
  const cases: [args: string[], env: object, code: number, stderr: RegExp][] = [
    [["quary"], {}, 2, /^There is no command quary\./],
    [["query", "--nothing"], {}, 2, /^Unknown option '--nothing'/],
    [["query", "nothing.graphql"], {}, 2, /neither an operation nor a file/],
    [["import", "leads"], {}, 2, /^Say what to import/],
    [["whoami"], { ...nobody, PLAT_URL: "" }, 2, /^Say which service/],
    [["whoami"], nobody, 3, /^UNAUTHENTICATED: You are not signed in/],
    [
      ["whoami"],
      { ...nobody, PLAT_TOKEN: "wrong", NODE_EXTRA_CA_CERTS: certificate },
      3,
      /^UNAUTHENTICATED: /,
    ],
    [["whoami"], { ...nobody, PLAT_TOKEN: "any" }, 4, /^NETWORK_ERROR: .*certificate/],
    [["whoami", "--url", "https://localhost:1"], { PLAT_TOKEN: "any" }, 4, /^NETWORK_ERROR: /],
    [["query", "{ nothing }"], {}, 1, /^BAD_USER_INPUT: .*nothing/],
    [["jobs", "retry"], {}, 2, /^Select the jobs/],
    [
      ["trigger", "lead.created", "--project", "p", "-o", "nowhere"],
      {},
      2,
      /There is no organization nowhere/,
    ],
    [
      ["login", service.baseUrl, "--trust", "-u", "demo@plat.example", "--password-stdin"],
      nobody,
      3,
      /^(Trusted.*\n)?UNAUTHENTICATED/,
    ],
  ];
  await signIn();
  for (const [args, env, code, stderr] of cases)
    expect({ args, ...(await plat(args, { env, input: "wrong" })) }).toMatchObject({
      args,
      code,
      stdout: "",
      stderr: expect.stringMatching(stderr),
    });
  // A log line can be found by the id of its request.
  const { stdout } = await plat(["query", "--full", "{ nothing }"]);
  const id = JSON.parse(stdout).errors[0].extensions.requestId;
  await writeFile(join(folder, "plat.log"), service.log());
  expect(await plat(["logs", "--request", id, "plat.log"])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\S+Z INFO http\.request .*BAD_USER_INPUT/),
  });
  expect(await plat(["logs", "--request", "other", "plat.log"])).toMatchObject({ code: 1 });
  const leads = await plat(["query", "{ leads(first: 1) { id } }"]);
  const lead = JSON.parse(leads.stdout).leads[0].id;
  expect(await plat(["why", "mei@plat.example", "Lead", lead, "name"])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Visible: .*\nRoles: MEMBER\n(.*\n)+name: visible\n$/),
  });
  expect(await plat(["why", "nobody@plat.example", "Lead", lead])).toMatchObject({ code: 2 });
  await writeFile(join(folder, "own.graphql"), "{ viewer { id } nothing }");
  expect(await plat(["changes", "-d", "own.graphql"])).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^invalid +own\.graphql: .*nothing/),
  });
  expect(await plat(["changes"])).toMatchObject({ code: 0 });
  expect(await plat(["logout"])).toMatchObject({ code: 0 });
  expect(await plat(["whoami"], { env: { PLAT_URL: service.baseUrl } })).toMatchObject({ code: 3 });
});

test("each command has help and completions", async () => {
  const { version } = JSON.parse(await readFile(join(repository, "packages/client/package.json"), "utf8"));
  expect(await plat(["--version"])).toMatchObject({ code: 0, stdout: `${version}\n` });
  const { stdout: help } = await plat([]);
  const names = [...help.matchAll(/^ {2}([a-z]+(?: [a-z]+)?) {2,}\S/gm)].map(([, name]) => name!);
  expect(names.length).toBeGreaterThan(15);
  for (const name of [names[0]!, names.at(-1)!, "webhook listen"])
    expect(await plat([...name.split(" "), "--help"])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`Usage: plat ${name} [OPTIONS]`),
    });
  const guide = await readFile(join(repository, "docs/command-line.md"), "utf8");
  expect(names.filter((name) => !guide.includes(`plat ${name}`) && !/^jobs|^completion/.test(name))).toEqual(
    [],
  );
  for (const shell of ["bash", "zsh", "fish"]) {
    const { stdout } = await plat(["completion", shell]);
    for (const word of ["webhook", "listen", "forward-to"]) expect(stdout).toContain(word);
  }
  await using shell = await openShell();
  const { stdout: script } = await plat(["completion", "bash"]);
  const completed = await shell.run(
    `${script}\nCOMP_WORDS=(plat webhook listen --fo); COMP_CWORD=3; _plat; echo "\${COMPREPLY[@]}"; COMP_WORDS=(plat wh); COMP_CWORD=1; _plat; echo "\${COMPREPLY[@]}"`,
  );
  expect(completed).toBe("--forward-to\nwhoami why\n");
});
