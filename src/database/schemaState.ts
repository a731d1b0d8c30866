import type { ClientBase, Pool } from "pg";

/** Enough for every process that may still run, and for a day of development. */
const keptStates = 200;

/**
 * The states of the replaceable objects that a database was brought to, the latest one first. An older one counts too:
 * during a rolling deployment, processes of the version before go on working, and may start again.
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

/** Notes that the database is in that state now, as a part of the transaction that brings it there. */
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
