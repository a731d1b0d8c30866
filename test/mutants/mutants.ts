/**
 * Mutants of the database: each lacks one policy, grant, permission that a policy or function requires, or check of a
 * function. Each must make some test fail.
 */
import type { Client } from "pg";
import { type Variant, variantsOfExpression, variantsOfQuery } from "./expressions.ts";

/** A change of the schema that removes one rule. */
export interface Mutant {
  /** Stable between runs. */
  id: string;
  kind: "policy" | "grant" | "function";
  /** The table or function, with its schema. */
  about: string;
  change: string;
  sql: string;
  /** Restores a function. */
  undo?: string;
  /**
   * The line that refuses, if only a check is changed, in the format of PostgreSQL: `app_public.cancel_purchase(uuid)
   * line 12`.
   */
  refusesAt?: string;
  /** Equal for rules that a generator created for several tables, except for names of tables and permissions. */
  likeness: string;
}

const schemas = "('app_public', 'app_hidden', 'app_private')";

/** All mutants of a migrated database. */
export async function findMutants(client: Client): Promise<Mutant[]> {
  const predicates = await permissionPredicates(client);
  return [
    ...(await ofPolicies(client, predicates)),
    ...(await ofGrants(client)),
    ...(await ofFunctions(client, predicates)),
  ].map((mutant, index, all) => ({
    ...mutant,
    id: numbered(mutant.id, all.slice(0, index).filter(({ id }) => id === mutant.id).length),
  }));
}

const numbered = (id: string, before: number) => (before === 0 ? id : `${id} (${before + 1})`);

/** Boolean functions in policies. */
async function permissionPredicates(client: Client): Promise<Set<string>> {
  const { rows } = await client.query<{ name: string }>(
    `select distinct n.nspname || '.' || p.proname as name
     from pg_depend d
     join pg_proc p on p.oid = d.refobjid and p.prorettype = 'boolean'::regtype
     join pg_namespace n on n.oid = p.pronamespace and n.nspname in ${schemas}
     where d.classid = 'pg_policy'::regclass and d.refclassid = 'pg_proc'::regclass`,
  );
  return new Set(rows.map(({ name }) => name));
}

interface Policy {
  table: string;
  name: string;
  permissive: boolean;
  using: string | null;
  check: string | null;
}

async function ofPolicies(client: Client, predicates: ReadonlySet<string>): Promise<Mutant[]> {
  const { rows } = await client.query<Policy>(
    `select polrelid::regclass::text as table, quote_ident(polname) as name, polpermissive as permissive,
       pg_get_expr(polqual, polrelid) as using, pg_get_expr(polwithcheck, polrelid) as check
     from pg_policy join pg_class c on c.oid = polrelid where c.relnamespace::regnamespace::text in ${schemas}
     order by 1, 2`,
  );
  return rows.flatMap((policy) => {
    const { table, name, using, check } = policy;
    const mutant = (change: string, sql: string): Mutant => ({
      id: `${table} policy ${name}: ${change}`,
      kind: "policy",
      about: table,
      change,
      sql,
      likeness: likeness(`${name} ${change} ${using} ${check}`, table),
    });
    const alter = (part: "using" | "with check", expression: string) =>
      `alter policy ${name} on ${table} ${part} (${expression})`;
    const parts = [
      ["using", using],
      ["with check", check],
    ] as const;
    return [
      mutant("dropped", `drop policy ${name} on ${table}`),
      ...parts.flatMap(([part, expression]) =>
        expression && expression !== "true"
          ? [
              mutant(`${part} → true`, alter(part, "true")),
              ...variantsOfExpression(expression, predicates).map(({ change, sql }) =>
                mutant(`${part}: ${change}`, alter(part, sql)),
              ),
            ]
          : [],
      ),
    ];
  });
}

async function ofGrants(client: Client): Promise<Mutant[]> {
  const { rows } = await client.query<{ about: string; role: string; privilege: string; on: string }>(
    `with granted as (
       select c.oid::regclass::text as about, c.relowner as owner, a.grantee, a.privilege_type as privilege, 'table ' || c.oid::regclass as on
       from pg_class c, aclexplode(c.relacl) a where c.relnamespace::regnamespace::text in ${schemas} and c.relkind in ('r', 'v', 'm', 'p')
       union all
       select c.oid::regclass::text, c.relowner, x.grantee, x.privilege_type || '(' || string_agg(quote_ident(a.attname), ', ' order by a.attnum) || ')', 'table ' || c.oid::regclass
       from pg_class c join pg_attribute a on a.attrelid = c.oid, aclexplode(a.attacl) x
       where c.relnamespace::regnamespace::text in ${schemas} group by c.oid, x.grantee, x.privilege_type
       union all
       select n.nspname || '.' || p.proname, p.proowner, a.grantee, a.privilege_type, 'function ' || p.oid::regprocedure
       from pg_proc p join pg_namespace n on n.oid = p.pronamespace, aclexplode(p.proacl) a where n.nspname in ${schemas})
     select about, r.rolname as role, privilege, granted.on from granted join pg_roles r on r.oid = grantee
     -- What belongs to a role needs no grant.
     where r.rolname like 'plat\\_%' and not r.rolsuper and r.rolname <> 'plat_owner' and r.oid <> owner
     order by 1, 2, 3, 4`,
  );
  return rows.map(({ about, role, privilege, on }) => ({
    id: `grant ${privilege} on ${on} to ${role}`,
    kind: "grant",
    about,
    change: "revoked",
    sql: `revoke ${privilege} on ${on} from ${role}`,
    likeness: `grant ${privilege} on ${on} to ${role}`,
  }));
}

interface Routine {
  oid: string;
  name: string;
  signature: string;
  language: "sql" | "plpgsql";
  source: string;
  definition: string;
  /** The table of which it masks a column. */
  masks: string | null;
}

/**
 * For functions called by policies, also indirectly, all conditions. For other SQL functions the permissions that
 * they check; for procedural ones also the checks that refuse.
 */
async function ofFunctions(client: Client, predicates: ReadonlySet<string>): Promise<Mutant[]> {
  const asked = await askedByPolicies(client);
  const { rows } = await client.query<Routine>(
    `select p.oid::text, n.nspname || '.' || p.proname as name, p.oid::regprocedure::text as signature, l.lanname as language,
       p.prosrc as source, pg_get_functiondef(p.oid) as definition, masked.relname as masks
     from pg_proc p
     left join (select c.reltype, c.relname, m.name from pg_class c cross join lateral unnest(app_hidden.masked_columns(c.oid)) m(name)
       where c.relnamespace = 'app_public'::regnamespace and c.relkind in ('r', 'p')) masked
       on p.pronargs = 1 and p.proargtypes[0] = masked.reltype and p.proname = masked.relname || '_' || masked.name
     join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
     where n.nspname in ${schemas} and l.lanname in ('sql', 'plpgsql') and p.prokind = 'f' and p.prosqlbody is null
     order by 3`,
  );
  return rows.flatMap((routine) => {
    const variants: (Variant & { refusesAt?: number })[] =
      routine.language === "sql"
        ? ofSqlBody(routine, predicates, asked.has(routine.name))
        : [
            ...ofBlocks(routine, predicates),
            ...(asked.has(routine.name) ? ofAnswers(routine, predicates) : []),
          ];
    return variants.map(({ change, sql, refusesAt }) => ({
      id: `${routine.signature}: ${change}`,
      kind: "function" as const,
      about: routine.name,
      change,
      sql: inUse(routine, sql),
      undo: inUse(routine, routine.definition),
      ...(refusesAt && { refusesAt: `${routine.signature} line ${refusesAt}` }),
      // Triggers that a generator created for each table.
      likeness: `${routine.name.replace(/\.tg_\w+?__/, ".tg_…__")}: ${change}`,
    }));
  });
}

/** The view of a table with masked columns contains the inlined functions, so it is recreated. */
const inUse = ({ masks }: Routine, sql: string): string =>
  masks === null
    ? sql
    : `${sql}; drop view app_hidden.masked_${masks}; drop function app_hidden.masked(app_public.${masks});
       select app_private.make_masked_view('${masks}')`;

/** Functions that policies call, directly or indirectly. */
export async function askedByPolicies(client: Client): Promise<Set<string>> {
  const { rows: routines } = await client.query<{ name: string; source: string }>(
    `select n.nspname || '.' || p.proname as name, string_agg(p.prosrc, ' ') as source
     from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname in ${schemas} group by 1`,
  );
  const sources = new Map(routines.map(({ name, source }) => [name, source]));
  const { rows: policies } = await client.query<{ source: string }>(
    "select concat(pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)) as source from pg_policy",
  );
  const asked = new Set(policies.flatMap(({ source }) => [...calledIn(source)]));
  for (const name of asked) for (const further of calledIn(sources.get(name) ?? "")) asked.add(further);
  return asked;
}

/** Names of functions, with their schemas, that the SQL calls. */
export const calledIn = (source: string): Set<string> => new Set(source.match(/\bapp_\w+\.\w+(?=\()/g));

function ofSqlBody({ source, definition }: Routine, predicates: ReadonlySet<string>, decides: boolean) {
  if (!decides && ![...predicates].some((predicate) => source.includes(predicate))) return [];
  return variantsOfQuery(source, predicates)
    .filter(
      ({ change }) => decides || [...predicates].some((predicate) => change.startsWith(`${predicate}(`)),
    )
    .map(({ change, sql }) => ({ change, sql: withSource(definition, source, sql) }));
}

/** A condition, up to its first statement. */
const refusal =
  /\b(?:els)?if\s+((?:(?!\b(?:then|case|loop|begin)\b)[^;])*?)\s+then\s+(?:perform\s+[\w.]*\b(?:fail|refuse\w*)\s*\(|raise\s+(?:exception|sqlstate|using|'))/gi;
const requirement = /\bperform\s+([\w.]*\brequire_\w+)\s*\(/gi;

function ofBlocks({ source, definition }: Routine, predicates: ReadonlySet<string>) {
  const code = withoutTexts(source);
  const changed = (from: number, to: number, by: string, change: string) => ({
    change,
    sql: withSource(definition, source, source.slice(0, from) + by + source.slice(to)),
  });
  const lineOf = (place: number) => source.slice(0, place).split("\n").length;
  return [
    ...[...code.matchAll(refusal)].map((match) => {
      const from = match.index + match[0].indexOf(match[1]!, 2);
      const to = from + match[1]!.length;
      const then = from + code.slice(from).search(/\b(?:perform|raise)\b/i);
      return {
        ...changed(from, to, "false", `if ${line(source.slice(from, to))} → never`),
        // Errors that the function itself catches, such as the end of a dry run, are not logged.
        ...(!/^raise\b/i.test(code.slice(then)) || !/\bexception\s+when\b/i.test(code.slice(then))
          ? { refusesAt: lineOf(then) }
          : {}),
      };
    }),
    ...[...code.matchAll(requirement)].map(({ index }) => {
      const to = code.indexOf(";", index);
      return {
        ...changed(index, to, "null", `${line(source.slice(index, to))} → nothing`),
        refusesAt: lineOf(index),
      };
    }),
    ...[...predicates].flatMap((predicate) =>
      // Not what names it, such as a comment on the function.
      [...code.matchAll(new RegExp(`(?<!\\bfunction\\s+)\\b${predicate.replace(".", "\\.")}\\(`, "gi"))].map(
        ({ index }) => {
          const to = endOfCall(code, index);
          return changed(index, to, "true", `${line(source.slice(index, to))} → true`);
        },
      ),
    ),
  ];
}

/** The results of a procedural function, as queries or expressions, including early returns. */
const answers =
  /\breturn\s+query\s+(?<query>[^;]+);|\breturn\s+(?!query\b|next\b)(?<value>[^;]+);|\bif\s+(?<condition>(?:(?!\b(?:then|loop|begin)\b)[^;])*?)\s+then\s+return\b/dgi;

function ofAnswers({ source, definition }: Routine, predicates: ReadonlySet<string>) {
  return [...withoutTexts(source).matchAll(answers)].flatMap((match) =>
    (["query", "value", "condition"] as const).flatMap((part) => {
      const [from, to] = match.indices!.groups![part] ?? [0, 0];
      const text = source.slice(from, to);
      if (!text) return [];
      const variants =
        part === "query"
          ? variantsOfQuery(text, predicates).map(({ change, sql }) => ({
              change,
              sql: sql.replace(/;\s*$/, ""),
            }))
          : variantsOfExpression(text, predicates);
      return [
        ...variants,
        ...(part === "condition" ? [{ change: `if ${line(text)} → never`, sql: "false" }] : []),
      ].map(({ change, sql }) => ({
        change,
        sql: withSource(definition, source, source.slice(0, from) + sql + source.slice(to)),
      }));
    }),
  );
}

/** The same code without strings and comments, such as policies that a generator creates. */
function withoutTexts(source: string): string {
  return source.replace(/--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|(\$\w*\$)[\s\S]*?\1/g, (text) =>
    /^['$]/.test(text) ? `'${"x".repeat(text.length - 2)}'` : " ".repeat(text.length),
  );
}

function endOfCall(code: string, from: number): number {
  let depth = 0;
  for (let i = code.indexOf("(", from); i < code.length; i++) {
    if (code[i] === "(") depth++;
    if (code[i] === ")" && --depth === 0) return i + 1;
  }
  return code.length;
}

const line = (text: string) => text.replace(/\s+/g, " ").slice(0, 160);

/** The statement that replaces the function by one with another body. */
function withSource(definition: string, source: string, changed: string): string {
  const at = definition.lastIndexOf(source);
  return definition.slice(0, at) + changed + definition.slice(at + source.length);
}

const likeness = (text: string, table: string) =>
  text
    .replaceAll(table, "this")
    .replaceAll(table.split(".").pop()!, "this")
    .replace(/'[a-z]+\.[a-z]+'/g, "'a.permission'");
