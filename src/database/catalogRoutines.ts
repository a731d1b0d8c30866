import { ownObject, routineWord, schemas, signature } from "./catalogSql.ts";

const functions = `
  select 'function' as kind, format('%s %s', r.word, r.signature) as identity, null as "on", r.definition,
    r.definition as "create", format('drop %s %s', r.word, r.signature) as "drop"
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  cross join lateral (
    select ${routineWord("p")} as word, ${signature("p", "n")} as signature,
      rtrim(pg_get_functiondef(p.oid), E'\\n') as definition) r
  where n.nspname in ${schemas} and p.prokind <> 'a' and ${ownObject("pg_proc", "p.oid")}`;

const aggregates = `
  select 'function' as kind, 'aggregate ' || r.signature as identity, null as "on", r.definition,
    r.definition as "create", 'drop aggregate ' || r.signature as "drop"
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_aggregate a on a.aggfnoid = p.oid
  cross join lateral (
    select ${signature("p", "n")} as signature, format('create or replace aggregate %s (%s)', ${signature("p", "n")},
      concat_ws(', ', 'sfunc = ' || a.aggtransfn, 'stype = ' || format_type(a.aggtranstype, null),
        case when a.aggfinalfn <> 0 then 'finalfunc = ' || a.aggfinalfn end,
        case when a.aggcombinefn <> 0 then 'combinefunc = ' || a.aggcombinefn end,
        case when a.agginitval is not null then 'initcond = ' || quote_literal(a.agginitval) end,
        case p.proparallel when 's' then 'parallel = safe' when 'r' then 'parallel = restricted' end)) as definition) r
  where n.nspname in ${schemas} and ${ownObject("pg_proc", "p.oid")}`;

const policies = `
  select 'policy' as kind, format('policy %I on %s', p.polname, d.table) as identity, d.table as "on", d.definition,
    d.definition as "create", format('drop policy %I on %s', p.polname, d.table) as "drop"
  from pg_policy p join pg_class c on c.oid = p.polrelid join pg_namespace n on n.oid = c.relnamespace
  cross join lateral (
    select format('%I.%I', n.nspname, c.relname) as table, concat(
      format('create policy %I on %I.%I', p.polname, n.nspname, c.relname),
      case when not p.polpermissive then ' as restrictive' end,
      ' for ', case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete'
        else 'all' end,
      ' to ', (select string_agg(coalesce(quote_ident(o.rolname), 'public'), ', ' order by o.rolname)
        from unnest(p.polroles) as m (role) left join pg_roles o on o.oid = m.role),
      E'\\n  using (' || pg_get_expr(p.polqual, p.polrelid) || ')',
      E'\\n  with check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')') as definition) d
  where n.nspname in ${schemas} and ${ownObject("pg_class", "c.oid")}`;

const triggers = `
  select 'trigger' as kind, format('trigger %I on %s', t.tgname, d.table) as identity, d.table as "on", d.definition,
    d.definition as "create", format('drop trigger %I on %s', t.tgname, d.table) as "drop"
  from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
  cross join lateral (
    select format('%I.%I', n.nspname, c.relname) as table, pg_get_triggerdef(t.oid) ||
      case when t.tgenabled = 'O' then '' else format('; alter table %I.%I %s trigger %I', n.nspname, c.relname,
        case t.tgenabled when 'D' then 'disable' when 'A' then 'enable always' else 'enable replica' end, t.tgname) end
      as definition) d
  where n.nspname in ${schemas} and c.relkind in ('r', 'p', 'v') and not t.tgisinternal and t.tgparentid = 0
    and ${ownObject("pg_class", "c.oid")}`;

/** Functions, procedures, aggregates, policies and triggers. */
export const routineQueries = [functions, aggregates, policies, triggers];
