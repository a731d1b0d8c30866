/**
 * What functions reveal about the rows of rowWorld.ts to each viewer: computed fields and masked columns, which take a
 * row, and functions that take an id. Each is called with the roles of the API, for rows that the viewer can see and
 * for others.
 */
import { escapeLiteral, type Client } from "pg";
import type { Reach } from "./rowReach.ts";
import { bundles, type RowWorld, type Viewer } from "./rowWorld.ts";

/** A function whose result depends on the viewer. */
export interface ViewerFunction {
  /** With its schema. */
  name: string;
  table: string;
  /** The call about row `c.copy`. */
  call: string;
  /** Whether its result depends on the properties that vary in a bundle. */
  byStatus: boolean;
  /** The function and those that it calls directly or indirectly. */
  uses: ReadonlySet<string>;
  /** The function of the schema `rows` that makes the call, without the name of the role. */
  asks: string;
}

const functionsQuery = `
  select n.nspname || '.' || p.proname as name, c.oid::regclass::text as table, p.proargnames[1] as argument
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_type t on t.oid = p.proargtypes[0]
  left join pg_class c on c.oid = t.typrelid
  where n.nspname like 'app\\_%' and p.prokind = 'f' and p.provolatile <> 'v' and p.pronargs - p.pronargdefaults <= 1 and p.pronargs >= 1
    -- By an id policies decide, unless it runs as its owner.
    and (c.oid is not null or t.typname = 'uuid' and p.prosecdef)
    and (has_function_privilege('plat_user', p.oid, 'execute') or has_function_privilege('plat_anonymous', p.oid, 'execute'))
  order by 1`;

/**
 * Signed links are equal for everybody who reads the row. Functions that return the row itself are masked by the
 * functions of its columns. PERF: the inputs of a draft take longer than everything else.
 */
const without = /_url$|^app_hidden\.(masked|lead_email_facts)$/;
/** Reads the viewer directly, not through a function that is also listed. */
const asking = /_can\(|viewer_|sees_|current_user_id|scopes_allow|has_whole_account|has_part_in/;

/** Finds the functions and prepares their calls, in a database that startRows has filled. */
export async function startAnswers(client: Client, world: RowWorld): Promise<ViewerFunction[]> {
  const { rows: found } = await client.query<{ name: string; source: string }>(
    `select n.nspname || '.' || p.proname as name, string_agg(p.prosrc, ' ') as source
     from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname like 'app\\_%' group by 1`,
  );
  const sources = new Map(found.map(({ name, source }) => [name, source]));
  const { rows } = await client.query<{ name: string; table: string | null; argument: string }>(
    functionsQuery,
  );
  await client.query(answerFunction);
  await client.query(externalIds);
  const listed = rows.flatMap(({ name, table, argument }) => {
    const uses = new Set([name]);
    for (const one of uses)
      for (const further of sources.get(one)?.match(/\bapp_\w+\.\w+(?=\()/g) ?? []) uses.add(further);
    const about = table ?? tableOf(name, argument, world);
    if (!uses.has("app_public.current_user_id") || without.test(name) || !about || !world.tables.has(about))
      return [];
    const given = table ? `jsonb_populate_record(null::${table}, c.copy)` : "(c.copy ->> 'id')::uuid";
    const byStatus = [...uses].some((one) => /\bstatus\b/.test(sources.get(one) ?? ""));
    return [{ name, table: about, byStatus, uses, call: `${name}(${given})` }];
  });
  const kept = listed
    .filter(
      ({ name, uses }) =>
        asking.test(sources.get(name)!) ||
        !listed.some((other) => other.name !== name && uses.has(other.name)),
    )
    .map((one, n) => ({ ...one, asks: `answers_${n}` }));
  const { rows: made } = await client.query<{ create: string }>(
    `select rows.answers_function(a.name || '_' || role, a.call, a.relation::regclass) as create
     from unnest($1::text[], $2::text[], $3::text[]) a (name, call, relation), unnest(array['user', 'anonymous']) role`,
    [kept.map(({ asks }) => asks), kept.map(({ call }) => call), kept.map(({ table }) => table)],
  );
  for (const { create } of made) await client.query(create);
  return kept;
}

/** The table whose ids a function takes, derived from the name of the argument or of the function. */
function tableOf(name: string, argument: string, { tables }: RowWorld): string | undefined {
  const subjects = [
    argument.replace(/_id$/, ""),
    name.replace(/^.*_/, ""),
    name.replace(/^\w+\.\w+_of_/, ""),
  ];
  return subjects.map((subject) => `app_public.${subject}s`).find((table) => tables.has(table));
}

/** Each lead is known to the owner of the project and to each party of it. */
const externalIds = `
  insert into app_private.lead_external_ids (organization_id, system, external_id, lead_id, project_id)
  select organization_id, 'crm', id::text, id, project_id from app_public.leads
  union select p.organization_id, 'crm', l.id::text, l.id, l.project_id from app_public.leads l join app_public.project_organizations p using (project_id)`;

const answerFunction = `
create view rows.projects as select id, organization_id, title from app_public.projects where deleted_at is null;
create view rows.permissions as select distinct permission from app_private.role_permissions;
grant select on rows.projects, rows.permissions to plat_user, plat_anonymous;
-- The rows of a table of which a call gives something: no null, no empty list, no "no". A refusal gives nothing.
-- PERF: one function for each call and role, which keeps its plans from viewer to viewer: one that has the body of a function in it does not
-- ask again who may call that.
create function rows.answers_function(name text, call text, relation regclass) returns text language sql stable as $outer$
  select format($text$
create function rows.%1$s(tried text[]) returns text[] language plpgsql volatile as $body$
#variable_conflict use_column
declare
  result text[];
  tried_label text;
  one text[];
begin
  begin
    %2$s into result from rows.candidates(%3$s, tried) c %4$s;
    return result;
  exception when sqlstate 'PLAT0' or data_exception then null;
  end;
  -- Some are refused.
  result := '{}';
  for tried_label in select c.label from rows.candidates(%3$s, tried) c loop
    begin
      %2$s into one from rows.candidates(%3$s, array[tried_label]) c %4$s;
      result := result || one;
    exception when sqlstate 'PLAT0' or data_exception then null;
    end;
  end loop;
  return (select coalesce(array_agg(r order by r), '{}') from unnest(result) r);
exception when insufficient_privilege then
  return null;
end $body$$text$,
    name, $$select coalesce(array_agg(c.label order by c.label), '{}')$$, relation::oid,
    format($$where coalesce((select jsonb_agg(to_jsonb(r)) from %s r where r is not null), '[]') not in ('[]', '[[]]', '[false]')$$, call))
$outer$;
-- The same lists, of the labels of rows rather than their ids.
create function rows.named(relation regclass, lists jsonb) returns jsonb language sql stable security definer as $body$
  select jsonb_object_agg(key, coalesce((select jsonb_agg(l.label order by l.label) from rows.labels l
    where l.relation = named.relation and value ? l.key), '[]')) from jsonb_each(lists)
$body$;
`;

const plain = bundles.map(({ name }) => name);
const positions = new Set(plain.filter((name) => !/deleted|another|Hidden|Old/.test(name)));
const isShared = (label: string) => !plain.some((bundle) => label.startsWith(bundle));

/**
 * The rows for which a function is called as a viewer. PERF: not in every position, and variants only if the function
 * distinguishes them; for a token, only whether it gets any result.
 */
export const testedRows = (
  { tables }: RowWorld,
  { table, byStatus }: ViewerFunction,
  { settings }: Pick<Viewer, "settings">,
): Set<string> =>
  new Set(
    [...tables.get(table)!].filter((label) =>
      settings
        ? isShared(label) || label === "View/buyer"
        : isShared(label) || positions.has(label) || (byStatus && label.startsWith("View/open ")),
    ),
  );

/**
 * Calls the functions as every viewer, in an open transaction of the owner.
 * @param functions the functions to call. Default: all
 */
export async function answersOf(
  client: Client,
  world: RowWorld,
  functions: ViewerFunction[],
): Promise<Reach> {
  const found: Reach = new Map(functions.map(({ name }) => [name, new Map()]));
  if (functions.length === 0) return found;
  const questions = (role: string, rowsOf: (one: ViewerFunction) => Iterable<string>) =>
    functions
      .map((one) => {
        const labels = [...rowsOf(one)].map((label) => escapeLiteral(label));
        return `select '${one.name}' as what, rows.${one.asks}_${role}(array[${labels.join(", ")}]::text[]) as told`;
      })
      .join(" union all ");
  const byPeople = questions("user", (one) => testedRows(world, one, {}));
  const byVisitors = questions("anonymous", (one) => testedRows(world, one, {}));
  const byTokens = questions("user", (one) => testedRows(world, one, { settings: {} }));
  await asEverybody(client, world, async ({ name, user, settings }) => {
    const { rows } = await client.query<{ what: string; told: string[] | null }>(
      settings ? byTokens : user ? byPeople : byVisitors,
    );
    for (const { what, told } of rows) found.get(what)!.set(name, told);
  });
  return found;
}

/**
 * The visible rows of masking views by viewer, and those whose masked column has a value; by view or function of the
 * column.
 */
export async function maskedOf(client: Client, world: RowWorld): Promise<Reach> {
  const { rows: columns } = await client.query<{
    view: string;
    table: string;
    oid: number;
    columns: string[];
  }>(
    `select 'app_hidden.masked_' || c.relname as view, c.oid::regclass::text as table, c.oid::int, app_hidden.masked_columns(c.oid)::text[] as columns
     from pg_class c where c.oid = any ($1::regclass[]) and app_hidden.masked_columns(c.oid) <> '{}' order by 1`,
    [[...world.tables.keys()]],
  );
  const found: Reach = new Map();
  const queries = columns.map(({ view, table, oid, columns: masked }) => {
    const lists = masked.map(
      (column) =>
        `'${table}_${column}', coalesce(jsonb_agg(v.id) filter (where v.${column} is not null), '[]')`,
    );
    return `select rows.named(${oid}, jsonb_build_object('${view}', coalesce(jsonb_agg(v.id), '[]'), ${lists.join(", ")})) as told from ${view} v`;
  });
  await asEverybody(client, world, async ({ name, user }) => {
    // Some are not granted to visitors.
    for (const query of user ? [queries.join(" union all ")] : queries) {
      await client.query("savepoint reading");
      try {
        const { rows } = await client.query<{ told: Record<string, string[]> }>(query);
        for (const { told } of rows)
          for (const [what, labels] of Object.entries(told))
            found.set(what, (found.get(what) ?? new Map<string, string[] | null>()).set(name, labels));
      } catch (error) {
        if (user || (error as { code?: string }).code !== "42501") throw error;
        await client.query("rollback to reading");
      }
    }
  });
  return found;
}

/**
 * Projects in which the permission check of a viewer differs from the sets of organizations and projects that policies
 * and views use, whether these are computed for the query or passed with it.
 */
export async function differentSets(
  client: Client,
  world: RowWorld,
): Promise<{ different: string[]; allowed: number; handed: number }> {
  const different: string[] = [];
  let allowed = 0;
  let handed = 0;
  const compare = async (name: string) => {
    const { rows } = await client.query<{ what: string; says: boolean; sets: boolean; wheres: boolean }>(
      `select p.title || ' ' || s.permission as what, app_hidden.project_can(p.id, p.organization_id, s.permission) as says,
         p.organization_id = any (s.organizations) or p.id = any (s.projects) or p.id = any (s.own) as sets,
         p.organization_id = any (s.organizations_where) or p.id = any (s.projects_where) as wheres
       from rows.projects p cross join (
         select permission, app_hidden.viewer_organizations(permission) as organizations,
           app_hidden.viewer_projects(permission) as projects, app_hidden.viewer_own_projects(permission) as own,
           app_hidden.organizations_where(permission) as organizations_where,
           app_hidden.projects_where(permission) as projects_where
         from rows.permissions r offset 0) s`,
    );
    allowed += rows.filter(({ says }) => says).length;
    different.push(
      ...rows
        .filter(({ says, sets, wheres }) => says !== sets || says !== wheres)
        .map(({ what }) => `${name}: ${what}`),
    );
  };
  await asEverybody(client, world, async ({ name, user, settings }) => {
    await compare(name);
    if (!user) return;
    await client.query("savepoint handing; reset role");
    const { rows } = await client.query<{ access: string | null; classes: string[] | null }>(
      "select access, classes from app_private.access_of($1, $2, $3)",
      [user, settings?.organization_id, settings?.scopes?.split(",")],
    );
    // If it is too large, the query computes it.
    if (rows[0]!.access !== null) {
      const access = { "": rows[0]!.access, _: "{}|{}|{}|{}|{}" };
      const classes = rows[0]!.classes!.map((sets, index) => [`_${index + 1}`, sets] as const);
      for (const [part, value] of [...Object.entries(access), ...classes])
        await client.query("select set_config($1, $2, true)", [`plat.access${part}`, value]);
      await client.query("set local role plat_user");
      await compare(`${name}, handed on`);
      handed += 1;
    }
    await client.query("rollback to handing");
  });
  return { different, allowed, handed };
}

async function asEverybody(
  client: Client,
  world: RowWorld,
  ask: (viewer: Viewer) => Promise<void>,
): Promise<void> {
  for (const viewer of [...world.people, ...world.tokens]) {
    const { user, settings } = viewer;
    const all = { user_id: user ?? "", scopes: "", organization_id: "", token_id: "", ...settings };
    await client.query(
      `${Object.entries(all)
        .map(([key, value]) => `set local plat.${key} = '${value}'`)
        .join("; ")}; set local role ${user ? "plat_user" : "plat_anonymous"}`,
    );
    await ask(viewer);
    await client.query("reset role");
  }
}
