/**
 * Runs attacks on a service that is started like `npm start` in production, with the embedded database and the demo,
 * and measures their effect on an owner of another organization. The attackers run at the lowest priority, as if they
 * had machines of their own. `npm run test:hostile` runs all attacks of test/hostile/attacks, `npm run test:hostile
 * -- NAME …` those named; HOSTILE_SECONDS (20) is the duration of each. Expected on an otherwise idle machine: p99
 * below 100 ms, /healthz below 50 ms, memory below 700 MB, no errors.
 */
import { migratedDataDir } from "../../src/cli/migratedDataDir.ts";
import { copyDataDir, removeDataDir } from "../../src/database/dataDirs.ts";
import { removeLeftoverFolders, scratchFolder } from "../../src/database/scratchFolder.ts";
import { startService } from "../harness/service.ts";
import { attackNames, play, type Figures } from "./play.ts";
import { serviceEnvironment } from "./serviceEnvironment.ts";
import { factsOf } from "./world.ts";

const clients = 8;
const seconds = Number(process.env.HOSTILE_SECONDS ?? 20);
const titleWidth = 58;

const columns = ["requests", "p50 ms", "p99 ms", "healthz p99", "peak MB", "errors"];
const line = (title: string, cells: (string | number)[]) =>
  `${title.padEnd(titleWidth)} ${cells.map((cell) => String(cell).padStart(11)).join(" ")}`;

function row({ title, requests, bystander, healthz, memory, errors }: Figures): string {
  const ms = (value: number) => value.toFixed(1);
  const mb = memory === undefined ? "–" : (memory / 1e6).toFixed(0);
  return line(title, [requests, ms(bystander.p50), ms(bystander.p99), ms(healthz.p99), mb, errors.length]);
}

/** Each attack has a service and a database of its own, so that earlier attacks have no effect. */
async function attackFreshService(name: string): Promise<Figures> {
  const dataDir = await scratchFolder("hostile");
  try {
    await copyDataDir(await migratedDataDir(), dataDir);
    await using service = await startService({ env: serviceEnvironment(dataDir) });
    return await play(name, await factsOf(service, dataDir), { clients, seconds });
  } finally {
    await removeDataDir(dataDir);
  }
}

const names = attackNames();
const chosen = process.argv.slice(2);
const unknown = chosen.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(`No such attack: ${unknown.join(", ")}. There are: ${names.join(", ")}`);
  process.exitCode = 1;
} else {
  await removeLeftoverFolders();
  console.log(line(`${clients} clients, ${seconds} s each`, columns));
  for (const name of chosen.length > 0 ? chosen : names) {
    const figures = await attackFreshService(name);
    console.log(row(figures));
    for (const text of new Set(figures.errors)) console.log(`  the bystander's error: ${text.slice(0, 300)}`);
    if (figures.faults.length > 0) {
      console.log(`  the attack does not work: ${figures.faults[0]}`);
      process.exitCode = 1;
    }
  }
}
