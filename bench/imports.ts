/**
 * Duration of importUnits for 100,000 rows over HTTPS, and the memory of the process meanwhile. Compared with COPY of
 * the same file into a table without keys, permissions, events or checks, and with createUnit one by one. Limit:
 * 10,000 rows/s. BENCH_SIZE sets the number of rows. Run: npm run bench -- imports
 */
import { chmod, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import type { Answer } from "../test/harness/api.ts";
import { multipartBody, sendRaw } from "../test/harness/upload.ts";
import { startWorld, type World } from "../test/harness/world.ts";
import { withDatabase, type BenchDatabase } from "./data/cluster.ts";
import { sized, unlessSmoke } from "./data/size.ts";

const rows = sized(100_000, 50);
const single = unlessSmoke(1_000, 3);
const columns = [
  "Unit #",
  "Title",
  "Status",
  "Price",
  "Floor plan",
  "Lot",
  "Beds",
  "Baths",
  "Sq Ft",
  "Level",
  "Building",
  "View",
  "HOA fee",
];

function csv(amount: number, price: number): Buffer {
  const lines = Array.from(
    { length: amount },
    (_, i) =>
      `N${i},Unit ${i},AVAILABLE,"${price + i}.00",A${1 + (i % 20)},L${1 + (i % 500)},2,2,900,3,Tower A,Lake,350\n`,
  );
  return Buffer.from(`${columns.join(",")}\n${lines.join("")}`);
}

const mb = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;

/** Prints the rows per second of the work, and the growth of the process's memory. */
async function report(name: string, amount: number, work: () => Promise<unknown>): Promise<void> {
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  let peak = before;
  const sample = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 20);
  const began = performance.now();
  const note = await work();
  const seconds = (performance.now() - began) / 1000;
  clearInterval(sample);
  console.log(
    `${name.padEnd(44)} ${seconds.toFixed(2).padStart(6)} s ${Math.round(amount / seconds)
      .toLocaleString("en")
      .padStart(9)} rows/s  memory +${mb(peak - before)}  ${note ?? ""}`,
  );
}

async function importer(world: World, file: Buffer, input: Record<string, unknown> = {}) {
  const encoded = multipartBody(
    `mutation ($input: ImportUnitsInput!) { importUnits(input: $input) { createdCount updatedCount skippedCount failedCount } }`,
    { input: { projectId: world.project.id, ...input, file: null } },
    { "variables.input.file": { bytes: file, name: "units.csv" } },
  );
  return async (): Promise<string> => {
    const answer: Answer = await sendRaw(world, world.owen, encoded);
    if (answer.errors) throw new Error(JSON.stringify(answer.errors));
    return JSON.stringify(answer.data.importUnits);
  };
}

export default (): Promise<void> => withDatabase(imports);

async function imports(database: BenchDatabase): Promise<void> {
  const world = await startWorld(database);
  const path = join(tmpdir(), `plat-bench-${process.pid}.csv`);
  try {
    await world.owner.query(
      "insert into app_public.floor_plans (project_id, title, code) select $1, 'Plan ' || i, 'A' || i from generate_series(1, 20) i",
      [world.project.id],
    );
    await world.owner.query(
      "insert into app_public.lots (project_id, number, multi_unit) select $1, 'L' || i, true from generate_series(1, 500) i",
      [world.project.id],
    );
    const file = csv(rows, 400_000);
    await writeFile(path, file);
    await chmod(path, 0o644);
    console.log(`${rows.toLocaleString("en")} rows of ${columns.length} columns, ${mb(file.length)}`);
    await database.owner.query(
      `create unlogged table bare (${columns.map((name) => `"${name}" text`).join(", ")})`,
    );
    await report("COPY into a bare table", rows, async () => {
      await database.owner.query(`copy bare from '${path}' with (format csv, header)`);
    });
    const createUnit = `mutation ($input: CreateUnitInput!) { createUnit(input: $input) { id } }`;
    await report("createUnit one by one", single, async () => {
      for (let i = 0; i < single; i += 1)
        await world.owen.get(createUnit, {
          input: { projectId: world.project.id, title: `One ${i}`, price: 400_000, status: "AVAILABLE" },
        });
    });
    await report("importUnits, dry run", rows, await importer(world, file, { dryRun: true }));
    await report("importUnits", rows, await importer(world, file));
    await report("importUnits, the same again", rows, await importer(world, file, { updateExisting: true }));
    await report(
      "importUnits, other prices",
      rows,
      await importer(world, csv(rows, 500_000), { updateExisting: true }),
    );
  } finally {
    await rm(path, { force: true });
    await world.stop();
  }
}
