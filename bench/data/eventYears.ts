/**
 * Events of several years of an organization with many projects, and viewers who may read few or many of them.
 * Triggers are disabled, so all columns are filled here.
 */
import type { Client } from "pg";
import { withoutIndexes } from "./portfolios.ts";

/** Viewers of the events: ids of existing users. */
export interface EventReaders {
  /** OWNER of the organization. */
  owner: string;
  /** MEMBER of the organization. Sees the leads of all projects but the last, which is PRIVATE. */
  member: string;
  /** Member of an agency that is affiliated with the first project, with one in a hundred of its leads. */
  seller: string;
  /** Has a purchase in the first project, and no role. */
  buyer: string;
}

interface Size {
  events: number;
  projects?: number;
  years?: number;
  /** Bytes per event, in addition to about 350. */
  bytes?: number;
}

/** Replaces the first partition of the empty table of events by one for each quarter. */
export async function partitionYears(client: Client, years: number): Promise<void> {
  // Only this role may execute the functions that create partitions.
  await client.query("set role plat_owner");
  await client.query(`do $$
    declare
      starts timestamptz := app_private.quarter_after(now() - interval '${years} years 3 months');
      made regclass;
      is_first boolean := true;
      until timestamptz;
    begin
      select p.ends_at into until from app_private.event_partitions() p where p.starts_at is null;
      alter table app_public.events detach partition app_partitions.events_first;
      while starts < until loop
        made := app_private.create_event_partition(starts);
        execute format('alter table app_public.events attach partition %s for values from (%s) to (%L)', made,
          case when is_first then 'minvalue' else quote_literal(app_private.first_id(starts)) end,
          app_private.first_id(app_private.quarter_after(starts)));
        is_first := false;
        starts := app_private.quarter_after(starts);
      end loop;
    end $$`);
  await client.query("reset role");
}

/** Number of events per insert statement. */
const CHUNK = 1_000_000;

/** Largest number of subjects of each kind. With more, loading them would take longer than loading their events. */
const MOST_SUBJECTS = 1_000_000;

/**
 * Inserts an organization with its projects, its events, and their subjects: records of each kind that is used daily.
 * @param client the owner's connection
 * @returns the ids of the organization and of its first project
 */
export async function loadEventYears(
  client: Client,
  { owner, member, seller, buyer }: EventReaders,
  { events, projects = 200, years = 5, bytes = 0 }: Size,
): Promise<{ organization: string; project: string }> {
  const one = async (text: string, values: unknown[] = []): Promise<string> =>
    (await client.query<{ id: string }>(text, values)).rows[0]!.id;
  const join = (home: string, id: string, role: string) =>
    client.query(
      "insert into app_public.organization_user_connections (organization_id, user_id, role) values ($1, $2, $3)",
      [home, id, role],
    );
  await client.query(
    "set session_replication_role = replica; set synchronous_commit = off; set maintenance_work_mem = '256MB'",
  );
  const home = (slug: string) =>
    one("insert into app_public.organizations (name, slug) values ($1::text, $1::text) returning id", [slug]);
  const [organization, agency] = [await home("years"), await home("years-agency")];
  await join(organization, owner, "OWNER");
  await join(organization, member, "MEMBER");
  await join(agency, seller, "OWNER");
  await client.query(
    `insert into app_public.projects (organization_id, title, slug, status, currency, lead_assignment)
     select $1::uuid, 'Project ' || n, 'years-' || n, 'SELLING', 'CAD', case when n = $2::int then 'PRIVATE' else 'MANUAL' end
     from generate_series(1, $2::int) n`,
    [organization, projects],
  );
  await client.query(
    `insert into app_public.project_organizations (project_id, owner_id, organization_id, role)
     select id, organization_id, organization_id, 'OWNER' from app_public.projects where organization_id = $1
     union all select id, organization_id, $2, 'SELLER' from app_public.projects where slug = 'years-1'`,
    [organization, agency],
  );
  const subjects = Math.min(MOST_SUBJECTS, Math.max(projects, Math.ceil(events / 20)));
  await client.query(
    `create temp table places as select n, p.id as project_id, p.organization_id
     from generate_series(1, $2::int) n join (select row_number() over (order by id) as place, count(*) over () as all, p.* from app_public.projects p
       where organization_id = $1) p on p.place = 1 + n % p.all`,
    [organization, subjects],
  );
  await client.query(
    `insert into app_public.leads (organization_id, project_id, name, email, origin, registered_at, assignee_id)
     select organization_id, project_id, 'Lead ' || n, 'lead' || n || '@example.com', 'API', now(),
       case when (n / $3) % 100 = 0 then $1::uuid when (n / $3) % 100 = 1 then $2::uuid end from places`,
    [member, seller, projects],
  );
  await client.query(
    `insert into app_public.units (organization_id, project_id, number, title, currency)
     select organization_id, project_id, 'U' || n, 'U' || n, 'CAD' from places where n % 4 = 0`,
  );
  await client.query(
    `insert into app_public.appointments (organization_id, project_id, lead_id, assignee_id, type, starts_at, ends_at, time_zone)
     select organization_id, project_id, id, assignee_id, 'PHONE', now(), now() + interval '1 hour', 'UTC' from app_public.leads where organization_id = $1`,
    [organization],
  );
  await client.query(
    `insert into app_public.phone_calls (organization_id, project_id, lead_id, direction)
     select organization_id, project_id, id, 'OUTBOUND' from app_public.leads where organization_id = $1`,
    [organization],
  );
  await client.query(
    `insert into app_public.tasks (organization_id, project_id, lead_id, title)
     select organization_id, project_id, id, name from app_public.leads where organization_id = $1`,
    [organization],
  );
  await client.query(
    `insert into app_public.workflow_executions (organization_id, project_id, lead_id, workflow_id, steps_revision, reentry, subject_type, subject_id, trigger_type)
     select organization_id, project_id, id, organization_id, 1, 'AFTER_COMPLETION', 'LEAD', id, 'MANUAL' from app_public.leads where organization_id = $1`,
    [organization],
  );
  await client.query(
    `insert into app_public.buyers (organization_id, project_id, price, currency, status, user_id)
     select organization_id, project_id, 1, 'CAD', 'FIRM', case when n = $1 then $2::uuid end from places where n % 20 = 0`,
    [projects, buyer],
  );
  await client.query(
    `insert into app_public.organization_invites (organization_id, email, role, status, expires_at)
     select $1, 'invited' || n || '@example.com', 'MEMBER', 'EXPIRED', now() from generate_series(1, 50) n`,
    [organization],
  );
  await client.query(
    `create temp table subjects as select row_number() over (order by md5(id::text)) as place, s.* from (
       select 'lead' as type, id, project_id from app_public.leads where organization_id = $1
       union all select 'unit', id, project_id from app_public.units where organization_id = $1
       union all select 'appointment', id, project_id from app_public.appointments where organization_id = $1
       union all select 'phone_call', id, project_id from app_public.phone_calls where organization_id = $1
       union all select 'task', id, project_id from app_public.tasks where organization_id = $1
       union all select 'workflow_execution', id, project_id from app_public.workflow_executions where organization_id = $1
       union all select 'buyer', id, project_id from app_public.buyers where organization_id = $1
       union all select 'organization_invite', id, null from app_public.organization_invites where organization_id = $1) s`,
    [organization],
  );
  const { rows } = await client.query<{ n: number }>("select count(*)::int as n from subjects");
  await client.query("create index on subjects (place)");
  await client.query("analyze subjects");
  await withoutIndexes(client, ["app_public.events"], async () => {
    for (let first = 1; first <= events; first += CHUNK)
      await client.query(
        `insert into app_public.events (id, stream_id, organization_id, project_id, sequence, name, occurred_at, subject_type, subject_id,
         actor_type, channel, changes, data, transaction_id)
       select uuidv7(d.ago), $1, $1, s.project_id, n, s.type || case when n % 100 < 5 then '.created' else '.updated' end, now() + d.ago,
         s.type, s.id, 'USER', 'API', '{"name": ["a", "b"]}', jsonb_build_object('id', s.id, 'name', 'Lead ' || n, 'status', 'NEW', 'message', repeat('x', $7::int)), 1
       from generate_series($2::int, $3::int) n
       cross join lateral (select -$4::interval * (1 - n::float8 / $5) as ago) d
       join subjects s on s.place = 1 + (n::bigint * 7919) % $6`,
        [
          organization,
          first,
          Math.min(first + CHUNK - 1, events),
          `${years} years`,
          events,
          rows[0]!.n,
          bytes,
        ],
      );
  });
  await client.query("insert into app_private.event_counters (stream_id, last_sequence) values ($1, $2)", [
    organization,
    events,
  ]);
  await client.query("drop table places; drop table subjects; reset session_replication_role");
  await client.query("vacuum (analyze) app_public.events");
  await client.query("analyze");
  return { organization, project: await one("select id from app_public.projects where slug = 'years-1'") };
}
