/**
 * Determines from the catalog how the rows of each table belong to an organization. This is the basis for moving one
 * organization to another database, and for distributing rows by `organization_id`.
 */
import { escapeIdentifier, type ClientBase } from "pg";
import { schemas as schemaList } from "./catalogSql.ts";

/** Role of a table that does not lead to an organization; whether its rows move with one is decided by the operator. */
const tenancies = {
  direct: "each row names its organization",
  parent: "each row has a foreign key that leads to its organization",
  partly: "rows may have no organization, or name it without a foreign key",
  account: "belongs to a user, who may be in several organizations",
  reference: "the same in each installation of a version",
  installation: "belongs to the installation, whatever the organization",
  none: "nothing tells",
} as const;

export type Tenancy = keyof typeof tenancies;
export const tenancyMeanings: Readonly<Record<Tenancy, string>> = tenancies;

/** Tables whose rows come from migrations, beside those of enumerations. */
const reference = [
  ...["column_permissions", "countries", "currencies", "import_columns", "imports", "record_types"].map(
    hidden,
  ),
  ...["report_columns", "report_subjects", "ticket_actions", "transition_requirements", "transitions"].map(
    hidden,
  ),
  ...["workflow_operators", "workflow_roots", "workflow_step_members", "workflow_step_types"].map(hidden),
  ...["bound_columns", "clock_steps", "deadline_kinds", "deal_tables", "error_codes", "event_names"].map(own),
  ...[
    "file_tables",
    "limits",
    "message_rules",
    "message_statuses",
    "message_words",
    "notification_kinds",
  ].map(own),
  ...["notification_rules", "principal_tables", "retention", "role_permissions", "schema_objects"].map(own),
  ...["sealed_columns", "searchable_tables", "sending_tiers"].map(own),
  "app_public.integration_apps",
];

/** Tables of the installation. */
const installation = [
  ...["event_rewrite_changes", "event_rewrites"].map(own),
  ...["cities", "documents", "idempotency_keys", "integration", "integration_secrets", "limit_changes"].map(
    own,
  ),
  ...[
    "limit_uses",
    "link_keys",
    "mail_deliveries",
    "message_answers",
    "processor_events",
    "sandbox_objects",
  ].map(own),
  ...["sandbox_requests", "search_words", "slugs", "stopped_numbers", "worker_connections", "workers"].map(
    own,
  ),
  // The new locations of organizations that have moved.
  "app_private.organization_moves",
];

/** Columns that hold the id of an organization, or of something else, without a foreign key. */
const otherColumns: Readonly<Record<string, string>> = {
  "app_private.access_versions": "party_id",
  "app_private.event_batches": "stream_id",
  "app_private.event_counters": "stream_id",
  "app_private.storage_used": "owner_id",
};

function hidden(table: string): string {
  return `app_hidden.${table}`;
}

function own(table: string): string {
  return `app_private.${table}`;
}

export interface TenantTable {
  table: string;
  tenancy: Tenancy;
  /** The steps from a row to its organization or user, such as `lead_id → app_public.leads`. */
  path: string[];
}

export interface TenantKey {
  table: string;
  name: string;
  columns: string[];
}

export interface TenantReference extends TenantKey {
  references: string;
  /**
   * Number of rows that refer to a row of another organization. Counted only on request, and only if both tables name
   * their organization.
   */
  crossing?: number;
}

export interface Tenancies {
  tables: TenantTable[];
  /** Unique keys of organizations' rows that hold across organizations. */
  uniqueKeys: TenantKey[];
  /** Foreign keys between organizations' rows that do not hold the organization. */
  foreignKeys: TenantReference[];
  /** Foreign keys from what all shards have to rows that only one has. */
  outwardKeys: TenantReference[];
}

/** The condition for the rows of an organization, or of users, in a table. */
export interface OwnedTable {
  table: string;
  tenancy: Tenancy;
  /** The column with the id of the organization or user; or else the foreign key that leads to it. */
  owner: string | { columns: string[]; references: string; foreign: string[] };
}

interface CatalogTable {
  table: string;
  enumeration: boolean;
  columns: { name: string; required: boolean }[];
}

export interface CatalogForeignKey extends TenantReference {
  foreign: string[];
  required: boolean;
}

const tenant = "organization_id";
const organizations = "app_public.organizations";
const users = "app_public.users";

const nameOf = (oid: string) =>
  `(select n.nspname || '.' || r.relname from pg_catalog.pg_class r
    join pg_catalog.pg_namespace n on n.oid = r.relnamespace where r.oid = ${oid})`;

/** The names of columns by their numbers, in their order. */
const columnsOf = (relation: string, numbers: string) =>
  `array(select a.attname::text from unnest(${numbers}) with ordinality k (number, place)
     join pg_catalog.pg_attribute a on a.attrelid = ${relation} and a.attnum = k.number order by k.place)`;

/** A partition counts as a part of its table. */
const isOurs = (relation: string) =>
  `${relation} in (select c.oid from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where n.nspname in ${schemaList} and c.relkind in ('r', 'p') and not c.relispartition)`;

const tablesSql = `
  select ${nameOf("c.oid")} as table,
    coalesce(pg_catalog.obj_description(c.oid, 'pg_class') ~ '^@enum', false) as enumeration,
    (select json_agg(json_build_object('name', a.attname, 'required', a.attnotnull)) from pg_catalog.pg_attribute a
     where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns
  from pg_catalog.pg_class c where ${isOurs("c.oid")} order by 1`;

const foreignKeysSql = `
  select ${nameOf("f.conrelid")} as table, f.conname as name, ${columnsOf("f.conrelid", "f.conkey")} as columns,
    ${nameOf("f.confrelid")} as references, ${columnsOf("f.confrelid", "f.confkey")} as foreign,
    (select bool_and(a.attnotnull) from pg_catalog.pg_attribute a
     where a.attrelid = f.conrelid and a.attnum = any (f.conkey)) as required
  from pg_catalog.pg_constraint f
  where f.contype = 'f' and f.conparentid = 0 and ${isOurs("f.conrelid")} and ${isOurs("f.confrelid")} order by 1, 2`;

const uniqueKeysSql = `
  select ${nameOf("i.indrelid")} as table,
    (select r.relname from pg_catalog.pg_class r where r.oid = i.indexrelid) as name,
    ${columnsOf("i.indrelid", "(i.indkey::int2[])[:i.indnkeyatts - 1]")} as columns
  from pg_catalog.pg_index i
  where (i.indisunique or i.indisexclusion) and ${isOurs("i.indrelid")} order by 1, 2`;

interface Way {
  /** To be shown. */
  path: string[];
  owner: OwnedTable["owner"];
}

/** The shortest ways from tables to those of `ends`, by foreign keys that `follow` lets pass. */
function waysTo(
  ends: ReadonlyMap<string, Way>,
  foreignKeys: readonly CatalogForeignKey[],
  follow: (key: CatalogForeignKey) => boolean,
): Map<string, Way> {
  const ways = new Map(ends);
  for (let last = [...ends.keys()]; last.length > 0;) {
    const reached: string[] = [];
    for (const key of foreignKeys)
      if (last.includes(key.references) && !ways.has(key.table) && follow(key)) {
        ways.set(key.table, {
          path: [`${key.columns.join(", ")} → ${key.references}`, ...ways.get(key.references)!.path],
          owner: key,
        });
        reached.push(key.table);
      }
    last = reached;
  }
  return ways;
}

function classified(
  tables: readonly CatalogTable[],
  foreignKeys: readonly CatalogForeignKey[],
): (TenantTable & OwnedTable)[] {
  const by = (column: string): Way => ({ path: [column], owner: column });
  const direct = new Map([[organizations, by("id")]]);
  const named = new Map(Object.entries(otherColumns).map(([table, column]) => [table, by(column)]));
  for (const { table, columns } of tables) {
    const column = columns.find(({ name }) => name === tenant);
    if (column) (column.required ? direct : named).set(table, by(tenant));
  }
  const whole = waysTo(direct, foreignKeys, ({ required }) => required);
  const partly = waysTo(new Map([...named, ...whole]), foreignKeys, () => true);
  const account = waysTo(new Map([[users, { path: [], owner: "id" }]]), foreignKeys, () => true);
  const tenancyOf = ({ table, enumeration }: CatalogTable): Tenancy => {
    if (enumeration || reference.includes(table)) return "reference";
    if (installation.includes(table)) return "installation";
    if (direct.has(table)) return "direct";
    if (whole.has(table)) return "parent";
    if (table === users) return "account";
    if (partly.has(table)) return "partly";
    return account.has(table) ? "account" : "none";
  };
  return tables.map((table) => {
    const way = partly.get(table.table) ?? account.get(table.table);
    return {
      table: table.table,
      tenancy: tenancyOf(table),
      path: way?.path ?? [],
      owner: way?.owner ?? "",
    };
  });
}

/** Reads how the rows of organizations and users are found, and the foreign keys between all tables. */
export async function readOwnedTables(
  client: ClientBase,
): Promise<{ tables: OwnedTable[]; foreignKeys: CatalogForeignKey[] }> {
  const { rows: catalogTables } = await client.query<CatalogTable>(tablesSql);
  const { rows: foreignKeys } = await client.query<CatalogForeignKey>(foreignKeysSql);
  const tables = classified(catalogTables, foreignKeys)
    .filter(({ tenancy }) => tenancy !== "reference" && tenancy !== "installation" && tenancy !== "none")
    .map(({ table, tenancy, owner }) => ({ table, tenancy, owner }));
  return { tables, foreignKeys };
}

/** Reads the catalog of an installation. @param rows whether references between organizations are counted, which reads all rows */
export async function readTenancies(client: ClientBase, rows = false): Promise<Tenancies> {
  const { rows: catalogTables } = await client.query<CatalogTable>(tablesSql);
  const { rows: references } = await client.query<CatalogForeignKey>(foreignKeysSql);
  const { rows: unique } = await client.query<TenantKey>(uniqueKeysSql);

  const tables = classified(catalogTables, references).map(({ owner: _owner, ...table }) => table);
  const distributed = new Set(
    tables
      .filter(({ tenancy }) => tenancy === "direct" || tenancy === "parent" || tenancy === "partly")
      .map(({ table }) => table),
  );
  const keyOf = (table: string) => (table === organizations ? "id" : tenant);
  const holds = ({ table, columns, references: to, foreign }: CatalogForeignKey) =>
    columns.some((column, place) => column === keyOf(table) && foreign[place] === keyOf(to));
  const toDistributed = references.filter(({ references: to }) => distributed.has(to));
  const shown = ({ foreign: _foreign, required: _required, ...key }: CatalogForeignKey): TenantReference =>
    key;

  const foreignKeys: TenantReference[] = [];
  const names = new Set(
    catalogTables
      .filter(({ table, columns }) => table === organizations || columns.some(({ name }) => name === tenant))
      .map(({ table }) => table),
  );
  for (const key of toDistributed.filter((one) => distributed.has(one.table) && !holds(one))) {
    const counts = rows && names.has(key.table) && names.has(key.references);
    foreignKeys.push(counts ? { ...shown(key), crossing: await crossing(client, key, keyOf) } : shown(key));
  }
  return {
    tables,
    uniqueKeys: unique.filter(
      ({ table, columns }) => distributed.has(table) && !columns.includes(keyOf(table)),
    ),
    foreignKeys,
    outwardKeys: toDistributed.filter(({ table }) => !distributed.has(table)).map(shown),
  };
}

const quoted = (table: string) => table.split(".").map(escapeIdentifier).join(".");

async function crossing(
  client: ClientBase,
  { table, references, columns, foreign }: CatalogForeignKey,
  keyOf: (table: string) => string,
): Promise<number> {
  const on = columns.map(
    (column, place) => `c.${escapeIdentifier(column)} = p.${escapeIdentifier(foreign[place]!)}`,
  );
  const { rows } = await client.query<{ count: string }>(
    `select count(*) from ${quoted(table)} c join ${quoted(references)} p on ${on.join(" and ")}
     where c.${keyOf(table)} <> p.${keyOf(references)}`,
  );
  return Number(rows[0]!.count);
}
