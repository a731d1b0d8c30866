import type { ClientBase, Pool } from "pg";

/** Number of former states that are kept: enough for all processes that may still run, and for a day of development. */
const keptStates = 200;

/**
 * States of the replaceable objects that a database was brought to, latest first. Older ones count too: during a
 * rolling deployment, processes of the previous version continue and may restart.
 */
export async function schemaStates(client: ClientBase | Pool): Promise<string[]> {
  const { rows: there } = await client.query<{ yes: boolean }>(
    "select to_regclass('app_private.schema_objects') is not null as yes",
  );
  if (!there[0]!.yes) return [];
  const { rows } = await client.query<{ hash: string }>(
    "select hash from app_private.schema_objects order by applied_at desc",
  );
  return rows.map(({ hash }) => hash);
}

/** Records the current state, in the transaction that reaches it. */
export async function noteSchemaState(client: ClientBase, hash: string): Promise<void> {
  await client.query(
    `insert into app_private.schema_objects (hash, applied_at) values ($1, clock_timestamp())
     on conflict (hash) do update set applied_at = excluded.applied_at`,
    [hash],
  );
  await client.query(
    `delete from app_private.schema_objects
     where hash in (select hash from app_private.schema_objects order by applied_at desc offset ${keptStates})`,
  );
}
