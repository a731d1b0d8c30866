/**
 * Rows per second of each sweep of the crontab, for 100,000 rows each (2,000 holds, reservations and offers, which
 * change six rows apiece), the longest transaction, and the growth of the process's memory. Run: npm run bench --
 * sweeps
 */
import { Pool } from "pg";
import { sweep } from "../src/jobs/sweep.ts";
import { withDatabase } from "./data/cluster.ts";
import { sized } from "./data/size.ts";

/** Set by BENCH_SIZE. */
const many = sized(100_000, 20);
const deals = Math.ceil(many / 50);

export default async function sweeps(): Promise<void> {
  await withDatabase(async ({ owner, ownerUrl }) => {
    const query = async (text: string, values: unknown[] = []) => (await owner.query(text, values)).rows;
    const pool = new Pool({ connectionString: ownerUrl, max: 2 });
    async function measure(
      name: string,
      amount: number,
      statement: string,
      batch: number,
      values: unknown[] = [],
    ) {
      let longest = 0;
      const before = process.memoryUsage().rss;
      const began = performance.now();
      await sweep(
        {
          abortSignal: new AbortController().signal,
          withPgClient: (async (work: (client: unknown) => Promise<unknown>) => {
            const client = await pool.connect();
            const start = performance.now();
            try {
              return await work(client);
            } finally {
              longest = Math.max(longest, performance.now() - start);
              client.release();
            }
          }) as never,
        },
        statement,
        batch,
        values,
      );
      const seconds = (performance.now() - began) / 1000;
      console.log(
        `${name.padEnd(24)} ${amount.toLocaleString("en").padStart(8)} rows ${seconds.toFixed(2).padStart(7)} s ` +
          `${Math.round(amount / seconds)
            .toLocaleString("en")
            .padStart(
              8,
            )} rows/s  longest transaction ${longest.toFixed(0)} ms  memory +${Math.max(0, (process.memoryUsage().rss - before) / 1e6).toFixed(0)} MB`,
      );
    }
    const [{ id: organization }] = await query(
      "insert into app_public.organizations (name) values ('Bench') returning id",
    );
    const [{ id: project }] = await query(
      "insert into app_public.projects (organization_id, title, status, currency) values ($1, 'Bench', 'SELLING', 'USD') returning id",
      [organization],
    );

    await query(
      "insert into app_private.idempotency_keys (viewer, key_sha256, body_hmac, inserted_at) select 'user', sha256(n::text::bytea), '', now() - interval '25 hours' from generate_series(1, $1::int) n",
      [many],
    );
    await measure("idempotency keys", many, "app_private.sweep_idempotency_keys($1)", 5000);
    await query(
      `with hook as (insert into app_public.webhooks (organization_id, url, events, secret_prefix) values ($1, 'https://hooks.example/', '{*}', 'x') returning id, organization_id)
       insert into app_public.webhook_deliveries (organization_id, webhook_id, status, inserted_at)
       select organization_id, id, 'SUCCEEDED', now() - interval '31 days' from hook, generate_series(1, $2::int)`,
      [organization, many],
    );
    await measure("webhook deliveries", many, "app_private.sweep_webhook_deliveries($1)", 5000);
    await query(
      "insert into app_private.mail_deliveries (key, recipient, outcome, at) select 'm' || n, 'a@example.com', 'SENT', now() - interval '91 days' from generate_series(1, $1::int) n",
      [many],
    );
    await measure("notes of mails", many, "app_private.sweep_retention($1, $2)", 5000, [
      "app_private.mail_deliveries",
    ]);
    await query(
      "insert into app_private.stored_files (checksum, filemime, filesize, check_at) select encode(sha256(n::text::bytea), 'hex'), 'image/png', 1, now() - interval '1 minute' from generate_series(1, $1::int) n",
      [many],
    );
    await measure(
      "files without a row",
      many,
      "(select count(*)::int from app_private.sweep_files($1))",
      100,
    );
    await query("update app_private.clock_steps set told_at = now() - interval '1 hour'");
    await query(
      "insert into app_public.tasks (project_id, title, due_at) select $1, 'T' || n, now() - interval '5 minutes' from generate_series(1, $2::int) n",
      [project, many],
    );
    await query("analyze");
    await measure("overdue tasks", many, "app_private.tell_clock_step($1, $2, $3)", 1000, [
      "task",
      "overdue",
    ]);
    await query(
      "insert into app_public.units (project_id, title, status, price) select $1, 'H' || n, 'AVAILABLE', 400000 from generate_series(1, $2::int) n",
      [project, deals],
    );
    const late = "begin; set local session_replication_role = replica; ";
    await query(
      "select app_private.take_claim(id, null, 'HOLD', 'hold', uuidv7(), now() + interval '1 hour') from app_public.units where project_id = $1",
      [project],
    );
    await query("analyze");
    const pass = () =>
      owner.query(
        `${late} update app_hidden.deadlines set due_at = now() - interval '1 minute'; update app_hidden.claims set expires_at = now() - interval '1 minute' where released_at is null;
         update app_public.reservations set expires_at = now() - interval '1 minute' where status = 'PENDING'; update app_public.offers set expires_at = now() - interval '1 minute' where status = 'PENDING'; commit`,
      );
    await pass();
    await measure("holds that are over", deals, "app_private.expire_due($1)", 200);
    await query(
      `with leads as (insert into app_public.leads (project_id, name) select $1, 'L' || n from generate_series(1, $2::int) n returning id),
        pairs as (select l.id as lead_id, u.id as unit_id from (select id, row_number() over () as n from leads) l
          join (select id, row_number() over (order by id) as n from app_public.units) u using (n))
       insert into app_public.reservations (project_id, unit_id, lead_id, accepted_terms) select $1, unit_id, lead_id, true from pairs`,
      [project, deals],
    );
    await query("analyze");
    await pass();
    await measure("reservations that are over", deals, "app_private.expire_due($1)", 200);
    await query(
      `insert into app_public.negotiations (project_id, unit_id, lead_id) select $1, u.id, l.id
        from (select id, row_number() over (order by id) as n from app_public.units) u join (select id, row_number() over (order by id) as n from app_public.leads) l using (n)`,
      [project],
    );
    await query(
      "insert into app_public.offers (negotiation_id, side, price) select id, 'BUYER', 390000 from app_public.negotiations",
    );
    await query("analyze");
    await pass();
    await measure("offers that are over", deals, "app_private.expire_due($1)", 200);
    const [left] = await query("select count(*)::int as n from app_hidden.deadlines where due_at <= now()");
    if (left.n > 0) throw new Error(`${left.n} deadlines were not settled.`);
    await pool.end();
  });
}
