/** What operations reveal to a visitor. */
import type { ClientBase, DatabaseError } from "pg";

/**
 * Calls each operation that depends on the viewer, and each function that a visitor can execute and that refuses
 * visitors, as a visitor and with nulls only.
 * @param client of a superuser, in a transaction
 * @param about the only one to call. Default: all of them
 * @returns the result by function; null if it was executed
 */
export async function visitorResults(
  client: ClientBase,
  about?: string,
): Promise<Map<string, string | null>> {
  const { rows } = await client.query<{ name: string; call: string }>(
    `select p.oid::regprocedure::text as name, format('select %s.%I(%s)', p.pronamespace::regnamespace, p.proname,
       (select string_agg('null::' || case t when 'anyelement'::regtype then 'app_public.tasks' else format_type(t, null) end, ', ' order by i) from unnest(p.proargtypes::oid[]) with ordinality u (t, i))) as call
     from pg_proc p where p.pronamespace::regnamespace::text in ('app_public', 'app_hidden') and has_function_privilege('plat_anonymous', p.oid, 'execute')
       and p.provolatile = 'v' and (p.pronamespace = 'app_public'::regnamespace or p.prosrc ~ 'app_hidden\\.(require_viewer|refuse_anonymous)\\(\\)')
       -- What it is @given is made after an app_hidden.begin_… has refused them.
       and coalesce(obj_description(p.oid, 'pg_proc') !~ '@withoutViewer', true)
       and not exists (select from unnest(p.proargtypes::oid[]) a where obj_description(a, 'pg_type') ~ '@given')
       and ($1::text is null or $1 = p.pronamespace::regnamespace || '.' || p.proname) order by 1`,
    [about ?? null],
  );
  const results = new Map<string, string | null>();
  for (const { name, call } of rows) {
    await client.query("savepoint call; set local role plat_anonymous");
    try {
      await client.query(call);
      results.set(name, null);
    } catch (error) {
      results.set(name, (error as DatabaseError).message);
    }
    await client.query("rollback to savepoint call");
  }
  return results;
}
