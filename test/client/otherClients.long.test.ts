/**
 * Other GraphQL clients against the service: `npm run test:clients`. Their packages are installed by this test only.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { build } from "../../packages/client/scripts/build.ts";
import { testCertificate } from "../harness/certificate.ts";
import { installPackagesOf } from "../harness/optionalPackages.ts";
import { createProject, startWorld, type World } from "../harness/world.ts";

const run = promisify(execFile);
const repository = resolve(import.meta.dirname, "../..");
const client = join(repository, "packages/client");
const compatibility = join(client, "compatibility");
let world: World;
let folder: string;

beforeAll(async () => {
  await installPackagesOf(compatibility);
  folder = await mkdtemp(join(tmpdir(), "plat-clients-"));
  [world] = await Promise.all([startWorld(), build(join(client, "dist"))]);
  await mkdir(join(compatibility, "node_modules/@plat"), { recursive: true });
  const installed = join(compatibility, "node_modules/@plat/client");
  await rm(installed, { force: true });
  await symlink(client, installed);
}, 600_000);
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  await world?.stop();
});

test("each of them works", async () => {
  const { cert } = await testCertificate();
  await writeFile(join(folder, "cert.pem"), cert);
  const project = await createProject(world.owen, {
    organizationId: world.harbour.id,
    title: "Lakeside",
    address: { locality: "Toronto", country: "CA" },
  });
  await world.owen.get("mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }", {
    input: { projectId: project.id, name: "Vera Lang" },
  });
  const setting = {
    url: world.url.replace("127.0.0.1", "localhost"),
    token: world.owen.token,
    projectId: project.id,
    schemaFile: join(repository, "schema.graphql"),
    folder,
  };
  const { stdout, stderr } = await run(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", "--preserve-symlinks", "run.ts"],
    {
      cwd: compatibility,
      env: {
        PATH: process.env.PATH,
        HOME: folder,
        NODE_EXTRA_CA_CERTS: join(folder, "cert.pem"),
        PLAT_SETTING: JSON.stringify(setting),
      },
      maxBuffer: 10_000_000,
    },
  );
  const results = JSON.parse(stdout.trim().split("\n").at(-1)!) as Record<
    string,
    { works: boolean; how: string }
  >;
  const failed = Object.entries(results).filter(([, { works }]) => !works);
  expect([failed, stderr]).toEqual([[], expect.anything()]);
  expect(Object.keys(results)).toHaveLength(7);
}, 300_000);
