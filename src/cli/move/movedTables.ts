/** The tables whose rows move with an organization, and how their rows are found and copied. */
import { escapeIdentifier, escapeLiteral, type ClientBase } from "pg";
import { schemas } from "../../database/catalogSql.ts";
import { readOwnedTables, type CatalogForeignKey, type OwnedTable } from "../../database/tenancy.ts";

/**
 * Tables whose rows do not outlive a transaction, or are of no use elsewhere. Contents of files are copied by their
 * checksums.
 */
const staying = new Set([
  ...["event_batches", "pending_events", "job_deaths", "stored_files"].map((name) => `app_private.${name}`),
]);

/** Tables that are copied for a user without an account at the other installation. */
const ofAccounts = new Set([
  "app_public.users",
  "app_hidden.user_identities",
  ...["user_passwords", "second_factors", "recovery_codes", "former_emails", "processor_customers"].map(
    (name) => `app_private.${name}`,
  ),
  "app_public.processor_cards",
]);

/**
 * Tables that are not copied for accounts: sign-ins, pending confirmations, and what people do for the installation.
 */
const notOfAccounts = new Set([
  "app_hidden.duplicate_accounts",
  ...["access_endings", "account_erasures", "email_change_stops", "email_changes", "email_verifications"].map(
    (name) => `app_private.${name}`,
  ),
  ...["oauth_attempts", "operators", "paused_tasks", "refresh_tokens", "sessions", "stream_tickets"].map(
    (name) => `app_private.${name}`,
  ),
  ...["user_networks", "user_otps"].map((name) => `app_private.${name}`),
]);

/** Columns with user ids, without a foreign key. */
const otherUserColumns = new Set([
  "app_private.contact_messages.user_id",
  "app_private.lead_turns.user_id",
  "app_public.events.actor_id",
]);

const organizations = "app_public.organizations";

export interface Column {
  name: string;
  /** The type, or the base type of its domain. */
  type: string;
}

export interface MovedTable {
  name: string;
  /** Without generated and identity columns, in the order of their names. */
  columns: readonly Column[];
  /** Columns that are sealed with keys of the installation, and are not compared. */
  sealed: readonly string[];
  /** Columns that identify a row on both sides. If there are none, the rows are replaced together. */
  key: readonly Column[];
  /** A generated number that orders the rows; it differs between installations. */
  order: string | undefined;
  /** Columns with ids of users. */
  users: ReadonlySet<string>;
  /** Whether the rows belong to accounts. */
  isAccount: boolean;
  /** Whether each change increments the counter of the organization, so that a pause prevents it. */
  isCounted: boolean;
  /** Whether processes lease rows of it. */
  isHeld: boolean;
  /** SQL condition for the rows that move. */
  condition(alias: string, moved: Moved): string;
}

/** The organization and accounts that move. */
export interface Moved {
  organizationId: string;
  /** Users who have no account at the other installation. */
  userIds: readonly string[];
}

/** A qualified name such as `app_public.users`, quoted for SQL. */
export const quoted = (table: string): string => table.split(".").map(escapeIdentifier).join(".");
const uuids = (ids: readonly string[]) => `${escapeLiteral(`{${ids.join(",")}}`)}::uuid[]`;

interface CatalogColumns {
  table: string;
  columns: (Column & { generated: boolean; identity: boolean })[];
  key: string[];
  sealed: string[];
  counted: boolean;
}

const catalog = `
  select n.nspname || '.' || c.relname as table,
    (select json_agg(json_build_object('name', a.attname, 'generated', a.attgenerated <> '', 'identity', a.attidentity <> '',
        'type', pg_catalog.format_type(case when t.typtype = 'd' then t.typbasetype else t.oid end, null)) order by a.attname)
      from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns,
    array(select a.attname::text from pg_catalog.pg_index i join pg_catalog.pg_attribute a
      on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
      where i.indrelid = c.oid and i.indisprimary order by a.attname) as key,
    array(select s.name::text from app_private.sealed_columns s where s.relation::regclass = c.oid) as sealed,
    exists (select from pg_catalog.pg_trigger g where g.tgrelid = c.oid
      and (g.tgname like '\\_950\\_events\\_%' or g.tgfoid = 'app_private.tg__count_change'::regproc)) as counted
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ${schemas} and c.relkind in ('r', 'p') and not c.relispartition`;

/** SQL conditions for the rows of an organization. */
class Conditions {
  readonly #tables: ReadonlyMap<string, OwnedTable>;

  constructor(tables: readonly OwnedTable[]) {
    this.#tables = new Map(tables.map((table) => [table.table, table]));
  }

  of(table: string, alias: string, moved: Moved): string {
    const { owner, tenancy } = this.#tables.get(table)!;
    if (typeof owner === "string")
      return tenancy === "account"
        ? `${alias}.${owner} = any (${uuids(moved.userIds)})`
        : `${alias}.${owner} = ${escapeLiteral(moved.organizationId)}::uuid`;
    const parent = `${alias}p`;
    const on = owner.columns.map(
      (column, place) =>
        `${parent}.${escapeIdentifier(owner.foreign[place]!)} = ${alias}.${escapeIdentifier(column)}`,
    );
    return `exists (select from ${quoted(owner.references)} ${parent} where ${on.join(" and ")} and ${this.of(owner.references, parent, moved)})`;
  }
}

export interface MovedTables {
  tables: readonly MovedTable[];
  foreignKeys: readonly CatalogForeignKey[];
  /** Describes the columns of all tables: the same on both sides. */
  shape: string;
}

/** @throws Error if a table of accounts is in none of the lists above */
export async function readMovedTables(client: ClientBase): Promise<MovedTables> {
  const { tables: owned, foreignKeys } = await readOwnedTables(client);
  const { rows: found } = await client.query<CatalogColumns>(catalog);
  const catalogOf = new Map(found.map((one) => [one.table, one]));
  const conditions = new Conditions(owned);
  const unknown = owned.filter(
    ({ table, tenancy }) => tenancy === "account" && !ofAccounts.has(table) && !notOfAccounts.has(table),
  );
  if (unknown.length > 0)
    throw new Error(
      `It is not declared whether rows of ${unknown.map(({ table }) => table).join(", ")} move with a user: add them in src/cli/move/movedTables.ts.`,
    );
  const moved = owned.filter(({ table, tenancy }) =>
    tenancy === "account" ? ofAccounts.has(table) : !staying.has(table),
  );
  const columnsToUsers = new Map<string, Set<string>>();
  for (const { table, columns, references, foreign } of foreignKeys)
    for (const [place, column] of columns.entries())
      if (
        (references === "app_public.users" && foreign[place] === "id") ||
        (ofAccounts.has(references) && foreign[place] === "user_id")
      )
        columnsToUsers.set(table, (columnsToUsers.get(table) ?? new Set()).add(column));

  const describe = (name: string, isAccount: boolean, condition: MovedTable["condition"]): MovedTable => {
    const { columns, key, sealed, counted } = catalogOf.get(name)!;
    const identity = columns.find((column) => column.identity)?.name;
    const keyColumns = key.length > 0 ? key : ["id", "type"];
    const users = new Set(columnsToUsers.get(name));
    for (const column of columns) if (otherUserColumns.has(`${name}.${column.name}`)) users.add(column.name);
    return {
      name,
      columns: columns.filter((column) => !column.generated && !column.identity),
      sealed,
      key:
        identity !== undefined && keyColumns.includes(identity)
          ? []
          : columns.filter((column) => keyColumns.includes(column.name)),
      order: identity,
      users,
      isAccount,
      isCounted: counted || name === "app_public.events" || name === "app_private.event_counters",
      isHeld: columns.some((column) => column.name === "holder" && column.type === "integer"),
      condition,
    };
  };
  return {
    tables: [
      ...moved.map(({ table, tenancy }) =>
        describe(table, tenancy === "account", (alias, whose) => conditions.of(table, alias, whose)),
      ),
      describe("app_private.slugs", false, slugs),
      describe("app_private.integration_secrets", false, secretsOfIntegrations(conditions)),
      describe("app_private.idempotency_keys", false, keysOfTokens(conditions)),
    ],
    foreignKeys,
    shape: JSON.stringify(
      found.map(({ table, columns }) => [table, columns]).toSorted(([a], [b]) => (a! < b! ? -1 : 1)),
    ),
  };
}

const slugs: MovedTable["condition"] = (alias, { organizationId, userIds }) => {
  const id = escapeLiteral(organizationId);
  return `case ${alias}.table_name when 'organizations' then ${alias}.record_id = ${id}::uuid
    when 'users' then ${alias}.record_id = any (${uuids(userIds)})
    when 'projects' then exists (select from app_public.projects p where p.id = ${alias}.record_id and p.organization_id = ${id}::uuid)
    end`;
};

const secretsOfIntegrations =
  (conditions: Conditions): MovedTable["condition"] =>
  (alias, moved) => {
    const of = (table: string) =>
      `exists (select from ${quoted(table)} i where i.id = ${alias}.integration_id and ${conditions.of(table, "i", moved)})`;
    return `(${of("app_public.organization_integrations")} or ${of("app_public.user_integrations")})`;
  };

/**
 * Idempotency keys: users sign in again and send new requests, but programs with an access token repeat the request
 * that was not answered.
 */
const keysOfTokens =
  (conditions: Conditions): MovedTable["condition"] =>
  (alias, moved) =>
    `${alias}.viewer in (select 'token ' || k.id from app_public.access_tokens k where ${conditions.of("app_public.access_tokens", "k", moved)})`;

/** References between rows that move and rows that stay. @returns one line for each foreign key with such references */
export async function crossingReferences(
  client: ClientBase,
  { tables, foreignKeys }: MovedTables,
  moved: Moved,
): Promise<string[]> {
  const byName = new Map(tables.filter(({ isAccount }) => !isAccount).map((table) => [table.name, table]));
  const lines: string[] = [];
  for (const key of foreignKeys) {
    const [child, parent] = [byName.get(key.table), byName.get(key.references)];
    if (!child || !parent) continue;
    const on = key.columns.map(
      (column, place) => `c.${escapeIdentifier(column)} = p.${escapeIdentifier(key.foreign[place]!)}`,
    );
    const { rows } = await client.query<{ count: number }>(
      `select count(*)::int as count from (
         select from ${quoted(child.name)} c join ${quoted(parent.name)} p on ${on.join(" and ")}
         where ${child.condition("c", moved)} and (${parent.condition("p", moved)}) is not true
         union all
         select from ${quoted(parent.name)} p join ${quoted(child.name)} c on ${on.join(" and ")}
         where ${parent.condition("p", moved)} and (${child.condition("c", moved)}) is not true) x`,
    );
    if (rows[0]!.count > 0)
      lines.push(`${rows[0]!.count} of ${key.table} (${key.columns.join(", ")} → ${key.references})`);
  }
  return lines;
}

/**
 * References at the other installation to missing rows.
 * @param tables that are checked
 * @returns one line for each foreign key with such references
 */
export async function danglingReferences(
  client: ClientBase,
  tables: readonly MovedTable[],
  { foreignKeys }: MovedTables,
  moved: Moved,
): Promise<string[]> {
  const byName = new Map(tables.map((table) => [table.name, table]));
  const lines: string[] = [];
  for (const { table, columns, references, foreign } of foreignKeys) {
    const child = byName.get(table);
    if (!child) continue;
    const on = columns.map(
      (column, place) => `p.${escapeIdentifier(foreign[place]!)} = c.${escapeIdentifier(column)}`,
    );
    const present = columns.map((column) => `c.${escapeIdentifier(column)} is not null`);
    const { rows } = await client.query<{ count: number }>(
      `select count(*)::int as count from ${quoted(table)} c where ${child.condition("c", moved)}
         and ${present.join(" and ")} and not exists (select from ${quoted(references)} p where ${on.join(" and ")})`,
    );
    if (rows[0]!.count > 0)
      lines.push(`${rows[0]!.count} of ${table} (${columns.join(", ")} → ${references})`);
  }
  return lines;
}

/** Whether it is the table of organizations itself. */
export const isOrganizations = (table: MovedTable): boolean => table.name === organizations;
