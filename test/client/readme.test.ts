/** The examples of the client's README: one program, compiled against the built package and run against the service. */
import { execFile } from "node:child_process";
import { createServer } from "node:https";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { testCertificate } from "../harness/certificate.ts";
import { guideBlocks } from "../harness/guide.ts";
import { picture } from "../harness/upload.ts";
import { startWorld, type World } from "../harness/world.ts";
import { builtClient } from "./built.ts";

const repository = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);
let world: World;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "plat-client-"));
  [world] = await Promise.all([startWorld(), builtClient(folder)]);
});
afterAll(async () => {
  await rm(folder, { recursive: true });
  await world.stop();
});

test("the examples compile and run as described", async () => {
  const blocks = (await guideBlocks("packages/client/README.md")).filter(({ language }) => language === "ts");
  expect(blocks.length).toBeGreaterThan(7);
  const { cert, key } = await testCertificate();
  await Promise.all([
    writeFile(join(folder, "example.ts"), blocks.map(({ text }) => text).join("\n")),
    writeFile(join(folder, "package.json"), '{ "type": "module" }'),
    writeFile(join(folder, "cert.pem"), cert),
    writeFile(
      join(folder, "tsconfig.json"),
      JSON.stringify({
        compilerOptions: {
          target: "es2022",
          lib: ["es2022"],
          module: "nodenext",
          types: ["node"],
          strict: true,
          exactOptionalPropertyTypes: true,
          noEmit: true,
        },
        files: ["example.ts"],
      }),
    ),
    symlink(join(repository, "node_modules/@types"), join(folder, "node_modules/@types")),
    symlink(join(repository, "node_modules/undici-types"), join(folder, "node_modules/undici-types")),
  ]);
  const compiled = await run(join(repository, "node_modules/.bin/tsc"), ["-p", folder]).catch(
    (error: { stdout: string }) => error,
  );
  expect(compiled.stdout).toBe("");

  const image = await picture();
  const pictures = createServer({ cert, key }, (_request, response) => {
    response.setHeader("content-type", "image/png").end(image);
  });
  await new Promise<void>((open) => pictures.listen(0, "localhost", open));
  try {
    const { stdout } = await run(process.execPath, ["--disable-warning=ExperimentalWarning", "example.ts"], {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        NODE_EXTRA_CA_CERTS: join(folder, "cert.pem"),
        PLAT_URL: world.url.replace("127.0.0.1", "localhost"),
        PLAT_TOKEN: world.owen.token!,
        PICTURE_URL: `https://localhost:${(pictures.address() as AddressInfo).port}/lobby.png`,
      },
    });
    expect(stdout.split("\n")).toEqual([
      "Harbour View CAD",
      expect.stringMatching(/^[0-9a-f-]{36} NEW$/),
      "now 1",
      expect.stringMatching(/^Vera Lang \d{4}-/),
      "1",
      "100 %",
      "lobby.png",
      "lead.updated [ null, 'Bright Side' ]",
      "",
    ]);
  } finally {
    pictures.close();
  }
});
