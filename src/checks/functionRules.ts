import type { Rule } from "./rule.ts";

/** Functions that depend on the viewer: those that call one of `roots`, directly or indirectly. */
const asking = (roots: string) => `
      with recursive asks as (
        select oid from functions where object in (${roots})
        union select c.caller from asks a join calls c on c.callee = a.oid)`;

const undeclared = "coalesce(pg_temp.tag(f.comment, 'withoutViewer'), '') = ''";

/** Functions: how they run and who may call them. */
export const functionRules: Rule[] = [
  {
    name: "definer-search-path",
    why: "Without a fixed search_path, a security definer function uses objects of schemas that its caller puts first.",
    query: `
      select object, 'Write \`set search_path = pg_catalog, pg_temp\` after \`security definer\`.' as write
      from functions where definer and not coalesce('search_path=pg_catalog, pg_temp' = any (settings), false)`,
  },
  {
    name: "invoker-search-path",
    why: "A function with settings of its own is never inlined.",
    query: `
      select object, 'Remove \`set search_path\`: it runs with the rights of its caller, and names are qualified.' as write
      from functions where not definer and settings::text like '%search_path%'`,
  },
  {
    name: "rows-compared",
    why: "The plan of a statement in a trigger is cached at its first run, mostly for one row: a join of the rows before and after then compares each row of a later run with each.",
    query: `
      select object, 'Write \`full join old_rows\` with \`where case when … then … else false end\`, which cannot become a nested loop, or compare by \`except\`.' as write
      from functions f join pg_proc p using (oid)
      where f.is_trigger and p.prosrc ~ '\\mjoin (old|new)_rows\\M' and p.prosrc ~ '(?<!full )\\mjoin (old|new)_rows\\M'`,
  },
  {
    name: "definer-viewer",
    why: "A security definer function bypasses policies: its result must depend on the viewer, or be public.",
    query: `${asking("'app_public.current_user_id()'")}
      select f.object, 'Check the viewer, such as by \`if not app_hidden.project_can(…) then return null; end if;\`, revoke the grant, '
        'or write \`@withoutViewer …\` into its comment with the reason.' as write
      from functions f
      where f.definer and not f.is_trigger and not (f.schema = 'app_public' and f.volatility = 'v')
        and (has_function_privilege('plat_user', f.oid, 'execute') or has_function_privilege('plat_anonymous', f.oid, 'execute'))
        and not exists (select from asks a where a.oid = f.oid) and ${undeclared}`,
  },
  {
    name: "operation-viewer",
    why: "An operation that visitors may call must refuse them itself, or be meant for them.",
    // The service creates what is tagged @given after a check by app_hidden.begin_….
    query: `${asking("'app_hidden.require_viewer()', 'app_hidden.refuse_anonymous()'")}
      select f.object, 'Begin it with \`perform app_hidden.require_viewer();\`, grant it to plat_user only, '
        'or write \`@withoutViewer …\` into its comment with the reason why visitors may call it.' as write
      from functions f
      where f.schema = 'app_public' and f.volatility = 'v'
        and (has_function_privilege('plat_anonymous', f.oid, 'execute') or f.definer and has_function_privilege('plat_user', f.oid, 'execute'))
        and not exists (select from asks a where a.oid = f.oid) and ${undeclared}
        and not exists (select from unnest(f.argument_types) a join pg_type t on t.oid = a
          where pg_temp.tag(obj_description(t.oid, 'pg_type'), 'given') is not null)`,
  },
  {
    name: "record-function",
    why: "Only a function that PostgreSQL inlines reads the record in the statement that calls it; any other is executed for each row.",
    query: `
      select f.object, format('Write \`returns setof %s language sql stable rows 1\`, no \`strict\`, one \`select …\` of its columns, and \`limit 1\` at its end.',
        t.object) as write
      from functions f join pg_proc p on p.oid = f.oid join pg_type y on y.oid = p.prorettype
      join tables t on t.oid = y.typrelid and t.schema = 'app_public'
      where f.schema = 'app_public' and (f.is_field and f.argument_count = 1 or f.argument_count = 0) and f.volatility <> 'v' and not f.definer and (not p.proretset or p.prorows = 1)
        and (not p.proretset or f.language <> 'sql' or p.proisstrict or f.source !~ 'limit 1\\s*$' or f.source !~* '^\\s*select \\w+\\.\\* from\\y')`,
  },
  {
    name: "lock-of-everybody",
    why: "A lock with one key for all organizations makes each wait until the others have committed.",
    query: `
      select f.object, 'Include the organization or the record in its key, or do not wait for it: \`pg_try_advisory_xact_lock\`.' as write
      from functions f
      where f.source ~ 'pg_advisory_(xact_)?lock(_shared)?\\(\\s*(\\d+(\\s*,\\s*\\d+)?|hashtext(extended)?\\(\\s*''[^'']*''\\s*(,\\s*\\d+\\s*)?\\))\\s*\\)'`,
  },
  {
    name: "lock-and-read",
    why: "A statement reads as of its begin: what the previous owner of a lock committed is not seen by the statement that takes the lock.",
    query: `
      select f.object, 'Take the lock by a statement of its own, and read by the next one.' as write
      from functions f
      where f.source ~ 'pg_(try_)?advisory_(xact_)?lock(_shared)?\\([^;]*\\mselect\\M'`,
  },
  {
    name: "job-key-of-everybody",
    why: "The key of a job is locked until the transaction that enqueues it ends, for all organizations.",
    query: `
      select f.object, 'Include the organization or the record in its job_key.' as write
      from functions f where f.source ~ 'job_key\\s*=>\\s*''[^'']*''\\s*[,)]'`,
  },
  {
    name: "function-unused",
    why: "Unused functions are read and maintained in vain.",
    query: `
      with recursive called as (
        select callee as oid from mentions
        union select f.oid from functions f where f.schema = 'app_public' and pg_temp.tag(f.comment, 'behavior') is distinct from '-*'
        union select c.callee from called a join calls c on c.caller = a.oid)
      select f.object, 'Drop it: neither the API nor a trigger, policy, function, task or declared row calls it.' as write
      from functions f where not f.is_trigger and not exists (select from called c where c.oid = f.oid)`,
  },
  {
    name: "function-grant-unused",
    why: "An unused privilege helps attackers; a security definer function calls others with the privileges of its owner.",
    // The rule worker-function finds what background work may execute. By default, visitors may execute what viewers may execute of
    // app_hidden.
    query: `
      select f.object || ' ' || r.name as object, format('Write \`revoke execute on function %s from %s;\`: it is only called by security definer functions.',
        f.object, r.name) as write
      from functions f cross join unnest(array['plat_user', 'plat_anonymous']) r (name)
      where f.schema <> 'app_public' and not f.is_trigger and has_function_privilege(r.name, f.oid, 'execute')
        and not exists (select from reachable c where c.oid = f.oid and (c.role = r.name or c.role = 'plat_user' and f.schema = 'app_hidden'))
      union all
      select f.object || ' plat_authenticator', format('Write \`revoke execute on function %s from plat_authenticator;\`: no code that answers requests calls it.',
        f.object)
      from functions f join pg_proc p on p.oid = f.oid
      where exists (select from aclexplode(p.proacl) a where a.grantee = 'plat_authenticator'::regrole)
        and not exists (select from service_calls s where s.callee = f.oid)`,
  },
  {
    name: "trigger-unused",
    why: "A trigger function without a trigger is never run.",
    query: `
      select f.object, format('Write \`create trigger _NNN_… on … execute function %s;\`, or drop it.', f.object) as write
      from functions f where f.is_trigger and not exists (select from pg_trigger t where t.tgfoid = f.oid)
        -- Or a function that makes one for a while.
        and not exists (select from pg_proc p where position('execute function ' || f.object in p.prosrc) > 0)`,
  },
];
