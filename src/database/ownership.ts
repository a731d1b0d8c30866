/** All our objects in a database are owned by a role that cannot log in. */
import type { Client } from "pg";
import { isTransient, lockAttempts, lockTimeoutMs, pauseAfter } from "./lockRetry.ts";
import type { MigrationLog } from "./migrationLog.ts";
import { masker, schemaOwner } from "./roles.ts";

const schemas =
  "('app_public', 'app_hidden', 'app_private', 'app_partitions', 'graphile_worker', 'graphile_migrate')";

/** Statements that transfer ownership; sequences follow their tables, and objects of extensions are left. */
const statementsQuery = `
  with owner as (select oid from pg_roles where rolname = '${schemaOwner}'),
  ours as (select oid, nspname as name, nspowner from pg_namespace where nspname in ${schemas})
  select format('alter %s %s owner to ${schemaOwner}', kind, identity) as statement from (
    select 1 as place, 'schema' as kind, quote_ident(name) as identity, nspowner as owned_by from ours
    union all
    select 2, case c.relkind when 'v' then 'view' when 'm' then 'materialized view' when 'S' then 'sequence' when 'c' then 'type' else 'table' end,
      format('%I.%I', o.name, c.relname), c.relowner
    from pg_class c join ours o on o.oid = c.relnamespace
    where c.relkind in ('r', 'p', 'v', 'm', 'S', 'c') and (c.relkind <> 'v' or c.relowner <> '${masker}'::regrole) and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass
      and d.objid = c.oid and (d.deptype = 'e' or c.relkind = 'S' and d.deptype in ('a', 'i')))
    union all
    select 3, case t.typtype when 'd' then 'domain' else 'type' end, format('%I.%I', o.name, t.typname), t.typowner
    from pg_type t join ours o on o.oid = t.typnamespace
    where t.typtype in ('d', 'e', 'r') and not exists (select from pg_depend d where d.classid = 'pg_type'::regclass and d.objid = t.oid and d.deptype = 'e')
    union all
    select 4, case p.prokind when 'a' then 'aggregate' when 'p' then 'procedure' else 'function' end,
      format('%I.%I(%s)', o.name, p.proname, pg_get_function_identity_arguments(p.oid)), p.proowner
    from pg_proc p join ours o on o.oid = p.pronamespace
    where not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype in ('e', 'i'))
  ) objects where owned_by <> (select oid from owner) order by place`;

const handOnDefaults = `
  alter default privileges grant execute on functions to public;
  alter default privileges in schema app_hidden revoke execute on functions from plat_user, plat_anonymous, plat_worker;
  set local role ${schemaOwner};
  alter default privileges revoke execute on functions from public;
  alter default privileges in schema app_hidden grant execute on functions to plat_user, plat_anonymous;`;

/**
 * Transfers all our objects from the login or a former owner to the role that cannot log in, in one transaction;
 * usually there is nothing to do. Locks are waited for briefly and retried after a pause, so that nobody queues
 * behind.
 * @param login a connection of the login that migrates, which owns the objects or is a superuser.
 * @returns number of objects transferred.
 */
export async function takeOwnership(login: Client, log: MigrationLog | undefined): Promise<number> {
  for (let tries = 1; ; tries++) {
    const { rows } = await login.query<{ statement: string }>(statementsQuery);
    if (rows.length === 0) return 0;
    try {
      await login.query(`begin; set local lock_timeout = ${lockTimeoutMs}`);
      for (const { statement } of rows) await login.query(statement);
      // Default privileges for functions that the first migration set apply to objects of its login.
      const { rowCount } = await login.query(
        "select from pg_default_acl where defaclrole = current_user::regrole",
      );
      if (rowCount) await login.query(handOnDefaults);
      await login.query("commit");
      log?.info(
        { event: "migration.owner", objects: rows.length },
        `Changed the owner of ${rows.length} objects to ${schemaOwner}.`,
      );
      return rows.length;
    } catch (error) {
      await login.query("rollback");
      if (!isTransient(error) || tries === lockAttempts) throw error;
      await pauseAfter(tries, (pause) =>
        log?.warn(
          { event: "migration.lock_timeout", attempt: tries },
          `Changing the owner timed out waiting for a lock; retrying in ${pause} ms.`,
        ),
      );
    }
  }
}
