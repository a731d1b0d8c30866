/**
 * Data for measurements at scale: organizations with 10 projects each (every third one is PRIVATE) and any number of
 * leads, and events for the largest. Triggers are disabled, so all columns are filled here.
 */
import type { Client } from "pg";

/** Viewers of the data: ids of existing users. */
export interface Viewers {
  /** OWNER of the organization. */
  owner: string;
  /** MEMBER of it, assignee of one lead in a hundred. */
  member: string;
  /** Member of an organization that is affiliated with its projects as SELLER, assignee of one lead in a hundred. */
  seller: string;
}

export interface Portfolio {
  name: string;
  leads: number;
  projects?: number;
  /** Number of events of leads. */
  events?: number;
  viewers?: Viewers;
}

/**
 * Inserts the portfolios and analyzes the tables; `client` is the owner's connection. Returns the ids of the
 * organizations by name.
 * @param words whether records can be found by search
 */
export async function loadPortfolios(
  client: Client,
  portfolios: readonly Portfolio[],
  { words = false } = {},
): Promise<Map<string, string>> {
  const ids = new Map<string, string>();
  await client.query(
    "set session_replication_role = replica; set synchronous_commit = off; set work_mem = '256MB'",
  );
  await client.query("set maintenance_work_mem = '512MB'");
  await withoutIndexes(client, ["app_public.leads", "app_public.events"], async () => {
    for (const portfolio of portfolios) ids.set(portfolio.name, await load(client, portfolio));
  });
  await client.query("reset session_replication_role");
  if (words) await fillSearchTexts(client);
  await client.query("vacuum (analyze) app_public.leads");
  await client.query("vacuum (analyze) app_public.events");
  await client.query("analyze");
  return ids;
}

async function load(client: Client, portfolio: Portfolio): Promise<string> {
  const { name, leads, projects = 10, events = 0, viewers } = portfolio;
  const one = async (text: string, values: unknown[]): Promise<string> =>
    (await client.query<{ id: string }>(text, values)).rows[0]!.id;
  const organization = (title: string) =>
    one("insert into app_public.organizations (name, slug) values ($1::text, $1::text) returning id", [
      title,
    ]);
  const join = (organizationId: string, user: string, role: string) =>
    client.query(
      "insert into app_public.organization_user_connections (organization_id, user_id, role) values ($1, $2, $3)",
      [organizationId, user, role],
    );

  const id = await organization(name);
  await client.query(
    `insert into app_public.projects (organization_id, title, slug, status, visibility, currency, lead_assignment, service_index, address)
     select $1::uuid, 'Project ' || n, $2::text || '-' || n, 'SELLING', case when n % 5 = 0 then 'PUBLIC' else 'PRIVATE' end, 'CAD',
       case when n % 3 = 0 then 'PRIVATE' else 'MANUAL' end, n % 101, row(null::text, null::text, 'Toronto'::text, 'ON'::text, null::text, 'CA'::app_public.country_code, null::float8, null::float8)::app_public.address
     from generate_series(1, $3::int) n`,
    [id, name, projects],
  );
  await client.query(
    `insert into app_public.project_organizations (project_id, owner_id, organization_id, role)
     select p.id, p.organization_id, p.organization_id, 'OWNER' from app_public.projects p where p.organization_id = $1`,
    [id],
  );
  if (viewers) {
    await join(id, viewers.owner, "OWNER");
    await join(id, viewers.member, "MEMBER");
    const agency = await organization(`${name}-agency`);
    await join(agency, viewers.seller, "OWNER");
    await client.query(
      `insert into app_public.project_organizations (project_id, owner_id, organization_id, role)
       select p.id, p.organization_id, $2, 'SELLER' from app_public.projects p where p.organization_id = $1`,
      [id, agency],
    );
  }
  await client.query(
    `insert into app_public.leads (organization_id, project_id, name, email, phone, status, origin, registered_at, assignee_id)
     select $1, p.ids[1 + n % cardinality(p.ids)],
       (array['Ada','Grace','Linus','Edsger','Barbara','Alan','Donald','Margaret'])[1 + n % 8] || ' ' || substr(md5(n::text), 1, 8),
       'lead' || n || '@example.com', '+1416' || lpad((1000000 + n)::text, 7, '0'),
       (array['NEW','CONTACTED','COLD','WARM','HOT','NEW','LOST','NEW','UNQUALIFIED','COLD'])[1 + (n / 7) % 10],
       'API', now() - interval '2 years' * random(),
       case n % 100 when 0 then $3::uuid when 1 then $4::uuid end
     from generate_series(1, $2::int) n, (select array_agg(id order by id) as ids from app_public.projects where organization_id = $1) p`,
    [id, leads, viewers?.member ?? null, viewers?.seller ?? null],
  );
  if (events > 0)
    await client.query(
      `insert into app_public.events (stream_id, organization_id, project_id, sequence, name, subject_type, subject_id,
         actor_type, channel, changes, data, transaction_id)
       select l.organization_id, l.organization_id, l.project_id, row_number() over (), 'lead.updated', 'lead', l.id,
         'USER', 'API', '{"name": ["a", "b"]}', jsonb_build_object('id', l.id, 'name', l.name, 'email', l.email), 1
       from (select * from app_public.leads where organization_id = $1) l,
         generate_series(1, ceil($2::numeric / $3)::int) limit $2::int`,
      [id, events, leads],
    );
  return id;
}

/** Fills the search index for records that were inserted without triggers. */
export async function fillSearchTexts(client: Client): Promise<void> {
  await withoutIndexes(client, ["app_private.search_texts", "app_private.search_words"], async () => {
    await client.query("select app_private.fill_search_texts()");
  });
}

/** Creating an index at the end takes a fraction of the time of updating it with each row. */
export async function withoutIndexes(
  client: Pick<Client, "query">,
  tables: string[],
  work: () => Promise<void>,
): Promise<void> {
  const { rows } = await client.query<{ name: string; definition: string }>(
    `select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition from pg_index i
     where i.indrelid = any ($1::regclass[]) and not exists (select from pg_constraint c where c.conindid = i.indexrelid)`,
    [tables],
  );
  for (const { name } of rows) await client.query(`drop index ${name}`);
  await work();
  // The index of a partitioned table creates those of its partitions.
  for (const { definition } of rows) await client.query(definition.replace(" ON ONLY ", " ON "));
}
