/**
 * Private parts of packages that the service uses. These packages are pinned: before a version is raised, everything
 * listed here must be reviewed in the new one.
 */
import { expect, test } from "@jest/globals";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { makeSchema } from "postgraphile";
import { PostGraphileAmberPreset } from "postgraphile/presets/amber";
import { DRIVER_VERSION, installedDriver, requireDriver } from "../../src/database/driver.ts";
import { repository } from "../../src/checks/sources.ts";
import { PdfLayout } from "../../src/pdf/pdfLayout.ts";

const require = createRequire(import.meta.url);
const json = (file: string) => JSON.parse(readFileSync(join(repository, file), "utf8"));
const { dependencies, overrides } = json("package.json");

/** The installed version, which package.json must name exactly. */
function pinned(name: string): string {
  expect({ ...dependencies, ...overrides }[name]).toMatch(/^\d+\.\d+\.\d+$/);
  const { version } = json(`node_modules/${name}/package.json`);
  expect({ ...dependencies, ...overrides }[name]).toBe(version);
  return version;
}

test("pg 8.23.1: custom queries write to the connection, and its stream detects silence", () => {
  expect(pinned("pg")).toBe(DRIVER_VERSION);
  expect(DRIVER_VERSION).toBe("8.23.1");
  requireDriver();
  const { utils, client } = installedDriver();
  const { connection } = client as { connection: object };
  const wireless = { ...Object.fromEntries(Object.entries(connection)), stream: undefined };
  expect(() =>
    requireDriver({ version: "9.0.0", utils, client: { ...client, connection: wireless } }),
  ).toThrow(
    /^This version needs pg 8\.23\.1; pg 9\.0\.0 is installed and has no .*Client\.connection\.stream\.write.*: run `npm ci`\.$/,
  );
});

test("graphile-migrate 1.4.1: its pools are closed by an internal function", () => {
  expect(pinned("graphile-migrate")).toBe("1.4.1");
  // Otherwise the process would end when one of them breaks; see src/database/chain.ts.
  expect(require("graphile-migrate/dist/pgReal.js")).toHaveProperty("clearAllPools", expect.any(Function));
});

test("graphile-worker 0.18.0: its statements about jobs have these names, and it exits with 57", () => {
  expect(pinned("graphile-worker")).toBe("0.18.0");
  const sql = (name: string) =>
    readFileSync(join(repository, "node_modules/graphile-worker/dist/sql", `${name}.js`), "utf8");
  // src/jobs/runnerPool.ts identifies them by these names.
  expect(sql("getJobs")).toMatch(/`get_job/);
  expect(sql("completeJobs")).toMatch(/`complete_jobs?(_q)?\//);
  expect(sql("failJobs")).toMatch(/`fail_jobs?(_q)?\//);
  expect(sql("returnJobs")).toMatch(/`return_jobs?\//);
});

test("pdfkit 0.20.2: the open font has widths, and its layout cache can be cleared", () => {
  expect(pinned("pdfkit")).toBe("0.20.2");
  const { document } = new PdfLayout({ title: "A page", layout: "portrait" });
  const { _font: open } = document as unknown as { _font: { font: object; layoutCache: object } };
  expect(open).toMatchObject({
    layoutCache: expect.any(Object),
    font: { layout: expect.any(Function), unitsPerEm: expect.any(Number) },
  });
});

test("graphile-build 5.1.1: the behavior engine has the memoized methods and the state that they read", async () => {
  expect(pinned("graphile-build")).toBe("5.1.1");
  expect(pinned("postgraphile")).toBe("5.1.5");
  let engine: object | undefined;
  await makeSchema({
    extends: [PostGraphileAmberPreset],
    plugins: [
      {
        name: "LookAtBehaviorsPlugin",
        version: "1.0.0",
        schema: {
          globalBehavior(unchanged, { behavior }) {
            engine = behavior;
            return unchanged;
          },
        },
      },
    ],
  });
  const methods = [
    "getPreferencesAppliedBehaviors",
    "entityMatches",
    "parseBehaviorString",
    "parseScope",
    "getBehaviorForEntity",
    "getInferredBehaviorForEntity",
    "getOverrideBehaviorForEntity",
    "resolveBehavior",
  ];
  expect(engine).toMatchObject({
    ...Object.fromEntries(methods.map((name) => [name, expect.any(Function)])),
    build: expect.any(Object),
    behaviorRegistry: expect.any(Object),
    behaviorEntities: expect.any(Object),
  });
});
