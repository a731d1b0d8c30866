/**
 * Determines which rows of rowWorld.ts each viewer can read and write, tried in SQL with the roles of the API, and
 * formats the result.
 */
import { type Client, escapeLiteral } from "pg";
import { bundles, makeRows, type Bundle, type RowWorld } from "./rowWorld.ts";

/** Fills a migrated database with the rows, for `reachOf`. */
export async function startRows(client: Client): Promise<RowWorld> {
  const world = await makeRows(client);
  await client.query(labelFunctions);
  const { rows } = await client.query<{ create: string }>(
    `select rows.reach_function(relation, (select xmin from rows.labels limit 1)) as create from unnest($1::text[]::regclass[]) relation`,
    [[...world.tables.keys()]],
  );
  for (const { create } of rows) await client.query(create);
  return world;
}

const labelFunctions = `
create function rows.labels_of(relation regclass, keys text[]) returns text[]
language sql stable security definer as $$
  select coalesce(array_agg(l.label order by l.label), '{}') from rows.labels l
  where l.relation = labels_of.relation and l.key = any (keys)
$$;
create function rows.candidates(relation regclass, tried text[]) returns setof rows.labels
language sql stable security definer as $$
  select l.* from rows.labels l where l.relation = candidates.relation and (tried is null or l.label = any (tried))
$$;
-- Rows of the table that are not as they were made, or no more.
create function rows.changed(relation regclass, made xid) returns text[] language plpgsql stable security definer as $$
declare
  same text[];
begin
  execute format('select array_agg(%s) from %s where xmin = $1', rows.key_expression(relation), relation)
    into same using made;
  return (select coalesce(array_agg(l.label order by l.label), '{}') from rows.labels l
    where l.relation = changed.relation and l.key <> all (coalesce(same, '{}')));
end $$;
-- PERF: one function for each table, which keeps its plans from viewer to viewer.
create function rows.reach_function(relation regclass, made xid) returns text language sql stable as $outer$
  select format($text$
create function rows.reach_%1$s(command text, tried text[]) returns text[] language plpgsql volatile as $body$
declare
  keys text[];
  reached text[] := '{}';
  candidate rows.labels;
begin
  case command
  when 'select' then
    select array_agg(%3$s) into keys from %2$s;
    return rows.labels_of(%1$s, coalesce(keys, '{}'));
  when 'insert' then
    if not has_table_privilege(%1$s, 'insert') then
      return null;
    end if;
    for candidate in select * from rows.candidates(%1$s, tried) loop
      begin
        -- There is such a row already. Policies have their say before that is found.
        insert into %2$s (%4$s) overriding system value
          select %4$s from jsonb_populate_record(null::%2$s, candidate.copy) on conflict do nothing;
        reached := reached || candidate.label;
      exception when insufficient_privilege then null;
      end;
    end loop;
    return (select coalesce(array_agg(r order by r), '{}') from unnest(reached) r);
  else
    begin
      -- Nothing is read, so that no policy for reading has a say.
      if command = 'delete' then
        delete from %2$s;
      else
        update %2$s set %5$s = null;
      end if;
      if found then
        reached := rows.changed(%1$s, %6$L);
      end if;
      raise sqlstate 'UNDOS';
    exception when sqlstate 'UNDOS' then
      return reached;
    end;
  end case;
exception when insufficient_privilege then
  return null;
end $body$$text$,
    relation::oid, relation, rows.key_expression(relation),
    (select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute where attrelid = relation and attnum > 0
      and not attisdropped and attgenerated = ''),
    coalesce(
      (select quote_ident(a.attname) from pg_attribute a where a.attrelid = relation and a.attnum > 0 and not a.attisdropped
        and a.attgenerated = '' and has_column_privilege('plat_user', relation, a.attnum, 'update')
        -- The row is to stay where it was.
        order by exists (select from pg_policy p where p.polrelid = relation
          and concat(pg_get_expr(p.polqual, relation), pg_get_expr(p.polwithcheck, relation)) ~ ('\\m' || a.attname || '\\M')),
          a.attnum desc limit 1),
      (select quote_ident(name) from rows.key_columns(relation) limit 1)), made)
$outer$;
`;

/** The labels of the rows, or null if the role lacks the grant; by table, command and viewer. */
export type Reach = Map<string, Map<string, string[] | null>>;

const commands = ["select", "insert", "update", "delete"];

/**
 * Executes every command as every viewer in an open transaction of the owner, which is unchanged afterwards.
 * @param tables the tables to try. Default: all
 */
export async function reachOf(
  client: Client,
  world: RowWorld,
  tables = [...world.tables.keys()],
): Promise<Reach> {
  const found: Reach = new Map(
    tables.flatMap((table) => commands.map((command) => [`${table} ${command}`, new Map()])),
  );
  await client.query("savepoint looking; set local session_replication_role = replica");
  // Which rows may be added is a policy; which of their columns is a grant, and most others are filled in by triggers.
  const { rows: granted } = await client.query<{ grant: string }>(
    `select format('grant insert on %s to %I', c.oid::regclass, role) as grant from pg_class c, unnest(array['plat_user', 'plat_anonymous']) role
     where c.oid = any ($1::regclass[]) and has_any_column_privilege(role, c.oid, 'insert')`,
    [tables],
  );
  for (const { grant } of granted) await client.query(grant);
  const { rows: oids } = await client.query<{ name: string; oid: number }>(
    "select name, name::regclass::oid as oid from unnest($1::text[]) name",
    [tables],
  );
  const tries = (labels: (label: string) => boolean) => {
    const added = new Set([...world.tables.values()].flatMap((all) => [...all]).filter(labels));
    const list = `array[${[...added].map((label) => escapeLiteral(label)).join(", ")}]`;
    return oids
      .flatMap(({ name, oid }) =>
        commands.map(
          (command) =>
            `select '${name} ${command}' as what, rows.reach_${oid}('${command}', ${command === "insert" ? list : "null"}) as reached`,
        ),
      )
      .join(" union all ");
  };
  // PERF: each inserted row is a separate statement. Variants are tried in some positions, and for a token only whether
  // it can insert at all.
  const plain = new Set(bundles.map(({ name }) => name));
  const triedByPeople = tries(
    (label) => plain.has(label) || /^View\/(open|own|seller) |^(project|organization) /.test(label),
  );
  const triedByTokens = tries((label) =>
    ["View/open", "View/open of nobody", "View/own", "View/buyer"].includes(label),
  );
  for (const { name, user, settings } of [...world.people, ...world.tokens]) {
    const all = { user_id: user ?? "", scopes: "", organization_id: "", token_id: "", ...settings };
    await client.query(
      `${Object.entries(all)
        .map(([key, value]) => `set local plat.${key} = '${value}'`)
        .join("; ")}; set local role ${user ? "plat_user" : "plat_anonymous"}`,
    );
    // For a token, it is sufficient to know what it can do at all.
    const { rows } = await client.query<{ what: string; reached: string[] | null }>(
      settings ? triedByTokens : triedByPeople,
    );
    for (const { what, reached } of rows) found.get(what)!.set(name, reached);
    await client.query("reset role");
  }
  await client.query("rollback to looking");
  return found;
}

/**
 * Number of rows that a role of the database reads of tables without row-level rules, such as lists of values, in an
 * open transaction.
 * @param only the tables to read. Default: all
 * @throws DatabaseError if the role lacks the grant
 */
export async function readOpenTables(
  client: Client,
  world: RowWorld,
  role: string,
  only?: string[],
): Promise<Map<string, number>> {
  const { rows: others } = await client.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c
     where c.relkind in ('r', 'p') and c.relnamespace in ('app_public'::regnamespace, 'app_hidden'::regnamespace)
       and c.oid <> all ($1::regclass[]::oid[]) and (exists (select from pg_policy p where p.polrelid = c.oid)
         or has_table_privilege('plat_user', c.oid, 'select') or has_table_privilege('plat_anonymous', c.oid, 'select'))
       and c.oid::regclass::text = any (coalesce($2::text[], array[c.oid::regclass::text]))
     order by 1`,
    [[...world.tables.keys()], only ?? null],
  );
  await client.query(`savepoint reading; set local role ${role}`);
  const found = new Map<string, number>();
  for (const { name } of others) {
    const { rows } = await client.query<{ count: string }>(`select count(*) from ${name}`);
    found.set(name, Number(rows[0]!.count));
  }
  await client.query("rollback to reading");
  return found;
}

/**
 * A readable text: the rows that each viewer reaches, with the tables and commands to which that applies.
 * @param rowsOf all rows of each table
 */
export function describeReach(reach: Reach, world: RowWorld, rowsOf = world.tables): string {
  const alike = new Map<string, Map<string, string[]>>();
  for (const [what, byViewer] of reach) {
    const [table, ...command] = what.split(" ") as [string, ...string[]];
    const text = whoReaches(byViewer, world, rowsOf.get(table)!);
    const tables = alike.get(text) ?? new Map<string, string[]>();
    alike.set(text, tables.set(table, [...(tables.get(table) ?? []), ...command]));
  }
  return [...alike]
    .map(([text, tables]) => {
      const titles = [...tables].map(([table, tried]) => [table, ...tried].join(" "));
      return `${titles.join("\n")}\n${text}`;
    })
    .join("\n");
}

function whoReaches(byViewer: Map<string, string[] | null>, world: RowWorld, every: Set<string>): string {
  const names = world.people.map(({ name }) => name);
  const groups = new Map<string, string[]>();
  for (const [name, labels] of byViewer) {
    const rows = labels === null ? "not granted" : together(labels, every);
    // Only tokens that reach something are listed.
    if (!names.includes(name) && (labels ?? []).length === 0) continue;
    groups.set(rows, [...(groups.get(rows) ?? []), name]);
  }
  return [...groups]
    .map(([rows, who]) => {
      const people = who.filter((name) => names.includes(name));
      const tokens = who.filter((name) => !names.includes(name));
      return `    ${listed(people.length === names.length ? ["everybody", ...tokens] : who)}: ${rows}\n`;
    })
    .join("");
}

const bundleNames = bundles.map(({ name }) => name).toSorted((a, b) => b.length - a.length);
/** Rows that are often reached together. */
const regions: [name: string, is: (bundle: Bundle) => boolean][] = [
  ["all of Harbour", ({ project, deletedFrom }) => project !== "Peak" && !deletedFrom],
  ["all of View", ({ project, deletedFrom }) => project === "View" && !deletedFrom],
  ["all of Quiet", ({ project }) => project === "Quiet"],
  ["all of Park", ({ project, deletedFrom }) => project === "Park" && !deletedFrom],
  ["the deleted", ({ deletedFrom }) => deletedFrom !== undefined],
];

/** @param every all rows of the table: a bundle whose rows are all reached is represented by its name. */
function together(labels: string[], every: Set<string>): string {
  const bundleOf = (label: string) =>
    bundleNames.find((name) => label === name || label.startsWith(`${name} `)) ?? label;
  const of = (some: Iterable<string>) => Map.groupBy(some, bundleOf);
  const whole = new Set<string>();
  const partly: string[] = [];
  const all = of(every);
  for (const [bundle, some] of of(new Set(labels))) {
    const missing = all.get(bundle)!.filter((label) => !some.includes(label));
    const variants = (list: string[]) =>
      list.map((label) => label.slice(bundle.length + 1) || "plain").join(", ");
    if (missing.length === 0) whole.add(bundle);
    else if (missing.length < some.length) partly.push(`${bundle} but not (${variants(missing)})`);
    else partly.push(`${bundle} (${variants(some)})`);
  }
  const lines: string[] = [];
  for (const [name, is] of regions) {
    const inside = bundles
      .filter((bundle) => is(bundle) && all.has(bundle.name))
      .map((bundle) => bundle.name);
    if (inside.length < 2 || !inside.every((bundle) => whole.has(bundle))) continue;
    lines.push(name);
    for (const bundle of inside) whole.delete(bundle);
  }
  return [...lines, ...whole, ...partly].join("; ") || "none";
}

/** Tokens of one person together. */
function listed(names: string[]): string {
  const tokens = new Map<string, string[]>();
  const plain: string[] = [];
  for (const name of names) {
    const [, owner, permission] = /^(.*)'s token for (.*)$/.exec(name) ?? [];
    if (owner) tokens.set(owner, [...(tokens.get(owner) ?? []), permission!]);
    else plain.push(name);
  }
  return [...plain, ...[...tokens].map(([owner, list]) => `${owner}'s token for ${list.join(" or ")}`)].join(
    ", ",
  );
}
