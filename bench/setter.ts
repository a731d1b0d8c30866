import { Client } from "pg";
import { startScratchCluster } from "../test/database/scratchCluster.ts";

/** Forms of the one statement that puts settings in place, each prepared, in transactions of its own, on one connection. */
const SETTINGS = [
  ["role", "bench_user"],
  ["plat.user_id", "0198c5e2-7d55-7d10-b1b0-5a9d1a3e6a11"],
  ["plat.organization_ids", "{0198c5e2-7d55-7d10-b1b0-5a9d1a3e6a11,0198c5e2-7d55-7d10-b1b0-5a9d1a3e6a12}"],
  ["plat.request_id", "r-1"],
] as const;
const values = SETTINGS.map(([, value]) => value);
const calls = SETTINGS.map(([name], index) => `set_config('${name}', $${index + 1}, true)`).join(", ");
const FORMS = {
  "one call per setting": [`select ${calls}`, values],
  "the same, no row": [`select 1 where concat(${calls}) is null`, values],
  json_each_text: [
    "select set_config(key, value, true) from json_each_text($1)",
    [JSON.stringify(Object.fromEntries(SETTINGS))],
  ],
  "json_array_elements (stock)": [
    "select set_config(el->>0, el->>1, true) from json_array_elements($1::json) el",
    [JSON.stringify(SETTINGS)],
  ],
} as const;

export default async function setter(): Promise<void> {
  const cluster = await startScratchCluster();
  const client = new Client({ connectionString: cluster.connectionString });
  await client.connect();
  try {
    await client.query("create role bench_user");
    const best = new Map<string, number>();
    for (let round = 0; round < 4; round += 1) {
      for (const [label, [text, parameters]] of Object.entries(FORMS)) {
        const start = performance.now();
        for (let n = 0; n < 5000; n += 1) await client.query({ text, values: [...parameters], name: label });
        best.set(label, Math.min(best.get(label) ?? Infinity, (performance.now() - start) / 5));
      }
    }
    for (const [label, microseconds] of best)
      console.log(`${label.padEnd(30)} ${microseconds.toFixed(0)} µs`);
  } finally {
    await client.end();
    await cluster.stop();
  }
}
