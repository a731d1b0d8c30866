/**
 * The clock of PostgreSQL jumps, by libfaketime (Debian's package `libfaketime`, without which this fails): errors of
 * clients, and effects on jobs, webhooks, workflows, deadlines and tokens. `npm run test:long --
 * test/process/databaseClock` prints its rows of the guide's table.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { chmod, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findBinaries } from "../../src/database/binaries.ts";
import { embeddedSettings, embeddedUrl } from "../../src/database/embeddedServer.ts";
import { startPostmaster } from "../../src/database/postmaster.ts";
import { databaseUser } from "../../src/database/systemUser.ts";
import { play } from "../faults/play.ts";
import { startStage, type Stage } from "../faults/stage.ts";
import { until } from "../harness/until.ts";

const library =
  process.env.FAKETIME ??
  `/usr/lib/${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu/faketime/libfaketime.so.1`;
const hour = 3_600_000;

let stage: Stage;
let folder: string;
let clock: string;

/** Shifts the clock of the server by hours. */
async function setClock(hours: number): Promise<void> {
  await writeFile(clock, `${hours < 0 ? "" : "+"}${hours}h\n`);
  await until(async () => {
    const { rows } = await stage.owner.query<{ now: Date }>("select clock_timestamp() as now");
    return Math.abs(rows[0]!.now.getTime() - Date.now() - hours * hour) < 60_000;
  });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "plat-clock-"));
  await chmod(folder, 0o755);
  clock = join(folder, "clock");
  await writeFile(clock, "+0h\n");
  const program = join(folder, "postgres");
  stage = await startStage({ LOOPBACK_WEBHOOKS: "1" }, async (dataDir) => {
    const data = join(await realpath(join(dataDir, "postgres")), "data");
    const runAs = databaseUser(data);
    const { postgres } = await findBinaries(runAs);
    const variables = `LD_PRELOAD='${library}' FAKETIME_TIMESTAMP_FILE='${clock}' FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1`;
    await writeFile(
      program,
      `#!/bin/sh\n[ -r '${library}' ] || { echo 'no ${library}' >&2; exit 1; }\n${variables} exec '${postgres}' "$@"\n`,
    );
    await chmod(program, 0o755);
    const server = await startPostmaster({
      postgres: program,
      data,
      logFile: join(dataDir, "postgres.log"),
      runAs,
      settings: embeddedSettings,
    });
    return { connectionString: await embeddedUrl(dataDir, server.port), stop: server.stop };
  });
}, 120_000);
afterAll(async () => {
  await stage?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** Overdue work, and work that is queued for a future time. */
const waiting = async () => {
  const { rows } = await stage.owner.query<{ what: string }>(
    `select t.identifier || ' ' || (j.run_at - now()) as what from graphile_worker._private_jobs j
       join graphile_worker._private_tasks t on t.id = j.task_id
       where j.attempts < j.max_attempts and (j.run_at <= now() - interval '1 minute' or j.created_at > now())
     union all select 'webhook ' || (q.due_at - now()) from app_private.webhook_queue q
       join app_public.webhook_deliveries d on d.id = q.delivery_id
       where q.due_at <= now() - interval '1 minute' or d.inserted_at > now() and q.due_at > now()
     union all select 'execution ' || e.status || ' ' || coalesce(e.scheduled_at - now(), '0') from app_public.workflow_executions e
       where e.status in ('PENDING', 'RUNNING') and coalesce(e.scheduled_at, e.inserted_at) <= now() - interval '1 minute'`,
  );
  return rows.map(({ what }) => what);
};

test.each([2, -2, 48, -48])(
  "a shift of %s hours has no visible effect, and work queued meanwhile is executed afterwards",
  async (hours) => {
    const before = await waiting();
    const { readers, writers, red, lost, attempts, longestMs } = await play(stage.played, {
      name: `${hours} hours off`,
      begin: () => setClock(hours),
      end: () => setClock(0),
      lastsMs: 12_000,
    });
    process.stderr.write(
      `${JSON.stringify({ hours, readers, writers, red, lost, attempts, longestMs, before: before.length, after: (await waiting()).length })}\n`,
    );
    expect([Object.keys(readers), Object.keys(writers), red, lost]).toEqual([["200"], ["200"], [], 0]);
    await until(waiting, (left) => left.length === 0, { withinMs: 60_000 });
  },
  200_000,
);
