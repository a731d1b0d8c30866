/**
 * Runs test/faults/randomKills.ts for an hour, or for KILL_SECONDS; SEED repeats a run: `npm run test:long --
 * test/process/randomKills`.
 */
import { test } from "@jest/globals";
import { playRandomKills } from "../faults/randomKills.ts";

const seconds = Number(process.env.KILL_SECONDS ?? 3_600);
const seed = Number(process.env.SEED ?? Date.now() % 100_000);

// oxlint-disable-next-line jest/expect-expect -- in what it plays
test(
  "nothing is lost, executed twice or stuck, whatever is killed and when",
  async () => {
    const kills = await playRandomKills({ seconds, seed, onDisk: true });
    process.stderr.write(`SEED=${seed}: ${JSON.stringify(kills)}\n`);
  },
  (seconds + 400) * 1_000,
);
