import { Client } from "pg";
import { startScratchCluster } from "../test/database/scratchCluster.ts";
import { sized, unlessSmoke } from "./data/size.ts";

/**
 * Variants of the statement that applies the settings of a request. Each is prepared, and runs in its own
 * transactions, on one connection.
 */
const ROUNDS = unlessSmoke(16, 1);
/** Calls per round; set by BENCH_SIZE. */
const CALLS = sized(1_000, 2);
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
    const forms = Object.entries(FORMS);
    const times = forms.map((): number[] => []);
    for (let round = 0; round < ROUNDS; round += 1) {
      // Another variant begins each round, so that none always follows the same other one.
      for (let turn = 0; turn < forms.length; turn += 1) {
        const index = (turn + round) % forms.length;
        const [name, [text, parameters]] = forms[index]!;
        const start = performance.now();
        for (let n = 0; n < CALLS; n += 1) await client.query({ text, values: [...parameters], name });
        times[index]?.push(((performance.now() - start) / CALLS) * 1000);
      }
    }
    for (const [index, [name]] of forms.entries()) {
      const ratios = times[index]!.map((time, round) => time / times[0]![round]!);
      const [time, ratio] = [times[index]!, ratios].map(
        (list) => list.toSorted((a, b) => a - b)[ROUNDS >> 1]!,
      );
      console.log(
        `${name.padEnd(30)} ${time!.toFixed(0)} µs  × ${ratio!.toFixed(2)} (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`,
      );
    }
  } finally {
    await client.end();
    await cluster.stop();
  }
}
