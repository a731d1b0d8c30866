import type { ClientBase, DatabaseError } from "pg";
import type { Difference } from "./differences.ts";

/** A table lock could not be acquired in time; it can report who holds it. */
export class LockTimeout extends Error {
  readonly code = "55P03";
  readonly table: string;

  constructor(table: string, cause: unknown) {
    super(`The lock on ${table} was not acquired in time.`, { cause });
    this.table = table;
  }

  /** Clause that names the current holders of the lock. */
  async describe(client: ClientBase): Promise<string> {
    const { rows } = await client.query<{ who: string }>(
      `select distinct format('process %s (%s, in a transaction since %s)', a.pid,
         coalesce(nullif(a.application_name, ''), a.usename, 'unnamed'), to_char(a.xact_start, 'HH24:MI:SS TZ')) as who
       from pg_locks l join pg_stat_activity a using (pid)
       where l.relation = $1::regclass and l.granted and l.database = (select oid from pg_database where datname = current_database())
         and a.pid <> pg_backend_pid()`,
      [this.table],
    );
    const holders = rows.map(({ who }) => who).join(", ") || "a transaction that has just ended";
    return `the table ${this.table} is locked by ${holders}.`;
  }
}

/**
 * Locks the tables whose policies or triggers change, before anything else, so that a retry after a lock timeout
 * costs nothing. Readers are only blocked if a policy changes or a trigger is dropped.
 * @throws LockTimeout
 */
export async function lockTables(client: ClientBase, changes: readonly Difference[]): Promise<void> {
  const modes = new Map<string, string>();
  for (const { kind, here, wanted } of changes) {
    if (kind !== "policy" && kind !== "trigger") continue;
    const table = (here ?? wanted)!.on!;
    const mode = kind === "policy" || here ? "access exclusive" : "share row exclusive";
    if (modes.get(table) !== "access exclusive") modes.set(table, mode);
  }
  const { rows } = await client.query<{ name: string }>(
    `select name from unnest($1::text[]) as name join pg_class c on c.oid = to_regclass(name)
     where c.relkind in ('r', 'p') order by name`,
    [[...modes.keys()]],
  );
  for (const { name } of rows)
    try {
      await client.query(`lock table ${name} in ${modes.get(name)} mode`);
    } catch (error) {
      if ((error as DatabaseError).code === "55P03") throw new LockTimeout(name, error);
      throw error;
    }
}
