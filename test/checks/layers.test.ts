import { expect, test } from "@jest/globals";
import { checkLayers, importsOf, layerFaults, layers } from "../../src/checks/layers.ts";

test("imports go down at most seven layers, and no folders import each other in a circle", async () => {
  expect(layers.length).toBeLessThanOrEqual(7);
  expect(await checkLayers()).toEqual([]);
});

/** Source texts, split so that they are not found as imports of this file. */
const from = (path: string) => `import type { Thing } ${"from"} "${path}";\n`;
const loaded = (path: string) => `const thing = await ${"import"}("${path}");\n`;

test("reports imports of a higher layer, of an earlier folder, and folders without a layer", () => {
  const faults = layerFaults(
    new Map([
      ["src/database/pool.ts", from("../http/app.ts")],
      ["src/http/app.ts", from("../database/pool.ts")],
      ["src/limits/cost.ts", from("../lists/page.ts") + from("./tokens.ts")],
      ["src/lists/page.ts", loaded("../limits/cost.ts")],
      ["src/compute/computePool.ts", `new Worker(new URL("${"../tasks/job.ts"}", import.meta.url));\n`],
      ["src/server.ts", from("./http/app.ts")],
      ["src/unknown/file.ts", from("../http/app.ts")],
    ]),
  );
  expect(faults.map((fault) => fault.split(",")[0])).toEqual([
    "src/compute/computePool.ts (services) imports src/tasks/job.ts (services)",
    "src/database/pool.ts (database) imports src/http/app.ts (transport)",
    "src/limits/cost.ts (GraphQL) imports src/lists/page.ts (GraphQL)",
    "src/unknown has no layer: list it in src/checks/layers.ts",
  ]);
});

test("imports over several lines are found", () => {
  expect(importsOf("src/http/app.ts", from("../auth/b.ts").replaceAll(" ", "\n "))).toEqual([
    "src/auth/b.ts",
  ]);
});
