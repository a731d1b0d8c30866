/**
 * Two organizations with a record of every table, for tests that are generated from the catalog. The first is the demo
 * organization; a table without demo data gets a row derived from the types of its columns. The second has a copy of
 * one row of each table, with references to its own rows.
 */
import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { createTestDatabase, type TestDatabase } from "./database.ts";

/** Ids of the rows of an organization, by table such as `app_public.leads`. */
export type OrganizationRows = Map<string, string[]>;

export interface TwoOrganizations {
  database: TestDatabase;
  /** Connections of the owner, to whom no policy applies. */
  client: Client;
  tables: Table[];
  theirs: OrganizationRows;
  ours: OrganizationRows;
  /** Their organization and ours. */
  organizations: { theirs: string; ours: string };
  /** The OWNER of ours, who has no role in theirs. */
  stranger: string;
  end(): Promise<void>;
}

export interface Column {
  name: string;
  /** The type as written in a cast. */
  type: string;
  notNull: boolean;
  /** Whether it has no default. */
  required: boolean;
  generated: boolean;
  /** The table whose id it refers to, if any. */
  refersTo: string | null;
  comment: string;
}

export interface Table {
  name: string;
  columns: Column[];
}

const tablesQuery = `
  select format('%I.%I', n.nspname, c.relname) as name, jsonb_agg(jsonb_build_object('name', a.attname,
    'type', format_type(a.atttypid, a.atttypmod), 'notNull', a.attnotnull, 'required', a.attnotnull and not a.atthasdef and a.attidentity = '',
    'generated', a.attgenerated <> '', 'comment', coalesce(col_description(c.oid, a.attnum), ''), 'refersTo', (
      select k.confrelid::regclass::text from pg_constraint k where k.contype = 'f' and k.conrelid = c.oid and k.conparentid = 0
        and k.conkey[1] = a.attnum and k.confrelid::regclass::text like 'app_public.%' limit 1)) order by a.attnum) as columns
  from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  where n.nspname = 'app_public' and c.relkind in ('r', 'p') and c.relname not like '%\\_values'
    and exists (select from pg_attribute i where i.attrelid = c.oid and i.attname = 'id' and i.atttypid = 'uuid'::regtype)
  group by c.oid, n.nspname, c.relname order by c.relname`;

/** Candidate values of types; the first one that the checks accept is used. */
const candidates = [
  "Sentence",
  "somebody@example.com",
  "+14165550123",
  "https://example.com/here",
  "CAD",
  "en",
  "America/Toronto",
  "#aabbcc",
  "1",
  "{}",
  "[]",
  "f",
  "2026-01-05",
  "2026-01-05T10:00:00Z",
  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
  "image/png",
];

/** A value of a type as text, from its enumeration or by trying candidates; null if none is accepted. */
export async function valueOf(
  client: Client,
  type: string,
  known: Map<string, string | null>,
): Promise<string | null> {
  const found = known.get(type);
  if (found !== undefined) return found;
  let value: string | null = null;
  const { rows: listed } = await client.query<{ table: string | null }>(
    "select to_regclass($1)::text as table",
    [`${type}_values`],
  );
  if (listed[0]!.table) {
    const { rows } = await client.query<{ value: string }>(
      `select value from ${listed[0]!.table} order by 1 limit 1`,
    );
    value = rows[0]!.value;
  } else if (type === "uuid") value = randomUUID();
  else
    for (const candidate of candidates) {
      const { rows } = await client.query<{ valid: boolean }>("select pg_input_is_valid($1, $2) as valid", [
        candidate,
        type,
      ]);
      if (!rows[0]!.valid) continue;
      value = candidate;
      break;
    }
  known.set(type, value);
  return value;
}

async function insert(client: Client, table: Table, values: Record<string, unknown>): Promise<string | null> {
  const names = table.columns
    .filter(({ name, generated }) => !generated && name in values)
    .map(({ name }) => name);
  const sql = `insert into ${table.name} (${names.map((name) => `"${name}"`).join(", ")}) overriding system value
    select ${names.map((name) => `r."${name}"`).join(", ")} from jsonb_populate_record(null::${table.name}, $1) r returning id`;
  for (let attempt = 0; ; attempt++) {
    await client.query("savepoint row");
    try {
      const { rows } = await client.query<{ id: string }>(sql, [JSON.stringify(values)]);
      return rows[0]!.id;
    } catch (error) {
      await client.query("rollback to row");
      const { code, message, detail } = error as { code: string; message: string; detail?: string };
      const taken = code === "23505" && attempt < 5 ? /Key \((.*?)\)=/.exec(detail ?? "")?.[1] : undefined;
      if (!taken) throw new Error(`${table.name}: ${message}`, { cause: error });
      for (const column of table.columns)
        if (taken.includes(column.name) && !column.refersTo && values[column.name] != null) {
          const before = values[column.name];
          values = {
            ...values,
            [column.name]:
              column.type === "uuid"
                ? randomUUID()
                : typeof before === "number"
                  ? before + 1000
                  : `${before as string}x`,
          };
        }
    }
  }
}

/** @param also statements to run before rows are inserted, such as enabling triggers */
export async function startTwoOrganizations(also = ""): Promise<TwoOrganizations> {
  const database = await createTestDatabase("demo");
  const client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
  const { rows: tables } = await client.query<Table>(tablesQuery);
  const known = new Map<string, string | null>();
  const theirs: OrganizationRows = new Map();
  const ours: OrganizationRows = new Map();
  // Neither triggers nor foreign keys apply.
  await client.query(`${also}; begin; set local session_replication_role = replica`);
  const { rows: organizations } = await client.query<{ id: string }>(
    "select organization_id as id from app_public.organization_user_connections group by 1 order by count(*) desc limit 1",
  );
  const theirOrganization = organizations[0]!.id;
  const ownIds = new Map(tables.map(({ name }) => [name, randomUUID()]));
  const firstIds = new Map<string, string>();
  for (const table of tables) {
    const has = (column: string) => table.columns.some(({ name }) => name === column);
    const { rows } = await client.query<{ id: string }>(
      `select id from ${table.name} where ${table.name === "app_public.organizations" ? "id = $1" : has("organization_id") ? "coalesce(organization_id = $1, true)" : "$1::uuid is not null"} order by id`,
      [theirOrganization],
    );
    theirs.set(
      table.name,
      rows.map(({ id }) => id),
    );
    firstIds.set(
      table.name,
      table.name === "app_public.organizations" ? theirOrganization : (rows[0]?.id ?? randomUUID()),
    );
  }
  for (const table of tables) {
    if (theirs.get(table.name)!.length > 0) continue;
    // Checks that involve several columns are not known here.
    const { rows: checks } = await client.query<{ drop: string }>(
      `select format('alter table %s drop constraint %I', conrelid::regclass, conname) as drop from pg_constraint
       where conrelid = $1::regclass and contype = 'c'`,
      [table.name],
    );
    for (const { drop } of checks) await client.query(drop);
    const values: Record<string, unknown> = { id: firstIds.get(table.name)! };
    for (const { name, type, notNull, required, refersTo, generated } of table.columns) {
      if (name === "id" || generated) continue;
      if (name === "organization_id") values[name] = theirOrganization;
      else if (refersTo && (notNull || name === "project_id")) values[name] = firstIds.get(refersTo);
      else if (required) {
        const value = await valueOf(client, type, known);
        const { rows } = await client.query<{ value: unknown }>(
          `select to_jsonb($1::text::${type}) as value`,
          [value],
        );
        values[name] = rows[0]!.value;
      }
    }
    theirs.set(table.name, [(await insert(client, table, values))!]);
  }
  for (const table of tables) {
    const { rows } = await client.query<{ row: Record<string, unknown> }>(
      `select to_jsonb(t) as row from ${table.name} t where id = $1`,
      [theirs.get(table.name)![0]],
    );
    const values: Record<string, unknown> = { ...rows[0]!.row, id: ownIds.get(table.name)! };
    for (const { name, refersTo } of table.columns) {
      const same = tables.find((other) => firstIds.get(other.name) === values[name]);
      if (name !== "id" && (same ?? refersTo) && values[name] != null)
        values[name] = ownIds.get(same?.name ?? refersTo!);
    }
    if (table.name === "app_public.organization_user_connections") values.role = "OWNER";
    ours.set(table.name, [(await insert(client, table, values))!]);
  }
  await client.query("commit; analyze");
  return {
    database,
    client,
    tables,
    theirs,
    ours,
    organizations: { theirs: theirOrganization, ours: ownIds.get("app_public.organizations")! },
    stranger: ownIds.get("app_public.users")!,
    async end() {
      await client.end();
      await database.drop();
    },
  };
}
