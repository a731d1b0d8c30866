/**
 * Duration of an export of 1,000,000 leads by an owner who may read all of them, and the peak memory of the writing
 * process compared with an idle one. Compared with COPY TO STDOUT of the same columns: as the owner of the database
 * from the table alone, and as the requester with row-level security and with the names of project, source and
 * assignee; the output is discarded. Limit: 200 MB. BENCH_SIZE sets the number of leads, BENCH_FORMATS the formats.
 * Run: npm run bench -- exports
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { promisify } from "node:util";
import { withDatabase, type BenchDatabase } from "./data/cluster.ts";
import { loadPortfolios } from "./data/portfolios.ts";
import { sized, unlessSmoke } from "./data/size.ts";

const leads = sized(1_000_000, 100);
const formats = (process.env.BENCH_FORMATS ?? unlessSmoke("CSV,JSONL,XLSX", "CSV")).split(",");
const mb = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;

function report(name: string, seconds: number, note = ""): void {
  const speed = Math.round(leads / seconds).toLocaleString("en");
  console.log(`${name.padEnd(48)} ${seconds.toFixed(1).padStart(6)} s ${speed.padStart(9)} rows/s  ${note}`);
}

export default (): Promise<void> => withDatabase(exports);

async function exports({ owner, ownerUrl }: BenchDatabase): Promise<void> {
  const user = async (name: string) =>
    (
      await owner.query<{ id: string }>(
        "insert into app_public.users (first_name) values ($1) returning id",
        [name],
      )
    ).rows[0]!.id;
  const viewers = { owner: await user("Olive"), member: await user("Mina"), seller: await user("Sally") };
  const organization = (await loadPortfolios(owner, [{ name: "large", leads, viewers }])).get("large")!;
  await owner.query("update graphile_worker._private_jobs set run_at = 'infinity'");
  const { rows: columns } = await owner.query<{ name: string; expression: string }>(
    "select name, expression from app_hidden.report_columns where subject = 'LEADS' and is_default order by position",
  );
  console.log(
    `${leads.toLocaleString("en")} leads, ${columns.length} columns: ${columns.map(({ name }) => name).join(", ")}`,
  );

  const copy = async (chosen: typeof columns) => {
    const began = performance.now();
    await owner.query(
      `copy (select ${chosen.map(({ expression }) => expression).join(", ")} from app_public.leads t
        where t.organization_id = '${organization}' and t.deleted_at is null order by t.registered_at desc, t.id desc) to stdout (format csv)`,
    );
    return (performance.now() - began) / 1000;
  };
  const asViewer = async (work: () => Promise<void>) => {
    await owner.query("begin; set local role plat_user");
    await owner.query("select set_config('plat.user_id', $1, true)", [viewers.owner]);
    await work();
    await owner.query("commit");
  };
  report(
    "COPY, the owner, columns of the table only",
    await copy(columns.filter(({ expression }) => /^t\.\w+$/.test(expression))),
  );
  await asViewer(async () => report("COPY, the requester, all columns", await copy(columns)));

  for (const [name, subject] of [
    ["report, the first 100 leads", '\'["name", "status", "sourceName"]\', \'{}\''],
    ["report, by source and month", "'[{\"aggregate\": \"COUNT\"}]', '{sourceName,registeredAt:month}'"],
  ] as const)
    await asViewer(async () => {
      const { rows } = await owner.query<{ id: string }>(
        `insert into app_public.custom_reports (organization_id, name, subject, columns, group_by) values ($1, 'r', 'LEADS', ${subject}) returning id`,
        [organization],
      );
      const began = performance.now();
      await owner.query(
        "select app_public.custom_reports_rows(r) from app_public.custom_reports r where r.id = $1",
        [rows[0]!.id],
      );
      console.log(`${name.padEnd(48)} ${(performance.now() - began).toFixed(0).padStart(6)} ms`);
    });

  const memory = async () =>
    Number(
      (
        await promisify(execFile)(process.execPath, [
          join(import.meta.dirname, "data/exportWorker.ts"),
          ownerUrl,
          dataDir,
        ])
      ).stdout,
    );
  const dataDir = await mkdtemp(join(tmpdir(), "plat-bench-exports-"));
  try {
    const idle = await memory();
    for (const format of formats) {
      let id = "";
      await asViewer(async () => {
        const { rows } = await owner.query<{ id: string }>(
          "select id from app_private.request_export($1, null, 'LEADS', $2, null, null, null, null, null)",
          [organization, format],
        );
        id = rows[0]!.id;
      });
      const peak = await memory();
      const { rows } = await owner.query<{
        status: string;
        row_count: number;
        filesize: number;
        seconds: number;
        error: string;
      }>(
        `select status, row_count, filesize, error, extract(epoch from completed_at - started_at)::float8 as seconds
         from app_public.exports where id = $1`,
        [id],
      );
      const { status, row_count, filesize, seconds, error } = rows[0]!;
      if (status !== "COMPLETED") throw new Error(`${status}: ${error}`);
      report(
        `export, ${format}`,
        seconds,
        `${row_count} rows, ${mb(filesize)}, memory +${mb(peak - idle)} above ${mb(idle)}`,
      );
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}
