/**
 * SQL of a portfolio list: the first rows of a table across everything that the viewer's organizations own or are
 * affiliated with.
 *
 * PERF: an order over `organization_id = any (…)` sorts the entire portfolio, since such a condition loses the order
 * of the index. So rows are read organization by organization (and project by project) along the index, at most as
 * many as the response contains, and merged. Where a scope has no index with the order of the list, its rows are read
 * and sorted: the planner would walk an index of all organizations in that order, which takes as long as those have
 * rows. The policy of the table still applies.
 */
import type { PgCodecAttributes } from "postgraphile/@dataplan/pg";
import { sql, type SQL } from "postgraphile/pg-sql2";
import type { SetName } from "../database/handedAccess.ts";
import { conditions, customPlan, type FilterMember, type Within } from "./filters.ts";
import { orderSql, type OrderSpec } from "./orders.ts";
import { follows, isUniform } from "./follows.ts";
import { isIndexed, orderWithin, type ScopeColumns } from "./indexedOrders.ts";

export interface PortfolioTable {
  name: [schema: string, table: string];
  /** Source of its rows: the table, or the masking view. */
  source: [schema: string, relation: string];
  permission: string;
  columns: Set<string>;
  attributes: PgCodecAttributes;
  members: FilterMember[];
  /** Whether the policy also shows records outside the portfolio: those of public projects. */
  hasPublicRows: boolean;
  defaultOrder: OrderSpec[];
  /** Function of app_hidden that returns the ids of the viewer's own records, regardless of portfolio. */
  ownFinder: string | undefined;
  /** Columns between scope and order in an index: one lookup per value of their filter. */
  listColumns: string[];
  /**
   * Rows shown by another permission, in organizations where the viewer lacks the first one: those with null in these
   * columns. Assigned records are not included; the finder returns the viewer's own.
   */
  also: { permission: string; nullColumns: string[] } | undefined;
}

export interface PortfolioRequest {
  filter: Record<string, unknown> | null | undefined;
  order: OrderSpec[];
  first: number;
  offset: number;
  /**
   * For a page of a connection: the order values of the row before it, null for the first page. The connection itself
   * trims excess rows.
   */
  after?: unknown[] | null;
}

/** Ids of the scopes in which the viewer has a permission, as an array; see permissions.sql. */
function setOf(name: SetName, permission: string) {
  return sql`${sql.identifier("app_hidden", name)}(${sql.literal(permission)})`;
}

/** The beginnings of parts that have rows only if a set is not empty; see src/database/usedBranches.ts. */
const conditionOf: Record<SetName, SQL> = {
  viewer_organizations: sql`/* if viewer_organizations */`,
  viewer_projects: sql`/* if viewer_projects */`,
  viewer_own_projects: sql`/* if viewer_own_projects */`,
};
/** A part of a list that has no rows if a set is empty. The first call of its function has the permission. */
const onlyIf = (set: SetName, branch: SQL) => sql`${conditionOf[set]} ${branch} /* end if */`;

/** Whether an id is in such a set, which is evaluated once; null counts as empty. */
function among(id: SQL, set: SQL | null): SQL {
  return set ? sql`${id} = any ((select ${set})::uuid[])` : sql`false`;
}

/**
 * Whether such a set has ids. PERF: about no row, so it is asked once, before the first one; where an organization has
 * most rows of a table, the planner reads all of them, also for a viewer without a part in any.
 */
const isNotEmpty = (set: SQL) => sql`(select ${set})::uuid[] <> '{}'`;

/** Whether the records of a table belong to an organization and a project, which have indexes. */
const isScoped = ({ columns }: PortfolioTable) => columns.has("organization_id") && columns.has("project_id");

/** Whether a list shows deleted rows, too. */
const showsDeleted = ({ columns }: PortfolioTable, { filter }: PortfolioRequest) =>
  filter?.includeDeleted === true && columns.has("deleted_at");

/** Not flattened, so that the order of the connection cannot be read from an index of all organizations. */
const fence = sql`offset 0`;

/** `(select …)` for the FROM of a list; rows are ordered and limited. */
export function portfolioSql(table: PortfolioTable, request: PortfolioRequest): SQL {
  const { order, first, offset } = request;
  const page = sql`order by ${orderSql(order, sql.identifier("u"))} limit ${sql.literal(first)} offset ${sql.literal(offset)}`;
  if (!isScoped(table)) {
    const source = showsDeleted(table, request) ? withDeleted(table) : sql.identifier(...table.source);
    const all = wholeScope(table, request, source);
    return request.after === undefined ? marked(sql`select u.* from (${all}) u ${page}`) : marked(all);
  }
  const filter = splitFilter(table, request.filter);
  const branches = scopeBranches(table, request, filter);
  if (showsDeleted(table, request)) branches.push(wholeScope(table, request, deletedRows(table)));
  const mark = filter.rest.length > 0 || request.after ? customPlan : sql.blank;
  return marked(
    sql`select ${mark} u.* from (${sql.join(branches, " union all ")}) u ${isLeftToConnection(request) ? sql.blank : page}`,
  );
}

/** All rows of a source that are in the portfolio and match the filter, unordered. */
function wholeScope(table: PortfolioTable, request: PortfolioRequest, source: SQL): SQL {
  const { filter, after } = request;
  const rows = sql.identifier("t");
  const where = [
    scope(table, rows, filter),
    ...conditions(table.members, filter, rows, within(table, filter)),
    ...(isScoped(table) && after ? [anyOf(cursorParts(table, request))] : []),
  ];
  const mark = where.length > 1 || after ? customPlan : sql.blank;
  return sql`select ${mark} ${usedColumns} from ${source} t where ${sql.join(where, " and ")}`;
}

/** All columns of `t`, or those that the statement uses; see src/database/usedColumns.ts. */
const usedColumns = sql`/* used columns */ t.*`;
/** A subquery with such columns. */
const marked = (rows: SQL) => sql`(/* rows */${rows} /* end of rows */)`;

const anyOf = (parts: SQL[]) => sql`(${sql.join(parts, " or ")})`;

/** The given fields of a filter, by their effect on the branches. */
interface SplitFilter {
  /** The field that selects projects. */
  projects: FilterMember | undefined;
  /** Fields about columns between scope and order in an index. */
  listed: FilterMember[];
  /** Implied values of such a column, if the filter has no field for it. */
  implied: FilterMember["implies"];
  /** All others, which become conditions. */
  rest: FilterMember[];
}

function splitFilter(
  { members, listColumns }: PortfolioTable,
  filter: PortfolioRequest["filter"],
): SplitFilter {
  const given = members.filter((m) => filter?.[m.name] != null);
  const listed = given.filter((m) => m.column && listColumns.includes(m.column));
  const implied = given.find(
    (m) =>
      m.implies &&
      filter![m.name] === true &&
      listColumns.includes(m.implies.column) &&
      !listed.some(({ column }) => column === m.implies!.column),
  )?.implies;
  const projects = given.find((m) => m.column === "project_id");
  return { projects, listed, implied, rest: given.filter((m) => m !== projects && !listed.includes(m)) };
}

const liveRows = ({ columns }: PortfolioTable) =>
  columns.has("deleted_at") ? [sql`t.deleted_at is null`] : [];

/** Whether no row comparison expresses the position of the cursor; then the connection omits the rows before it. */
const isLeftToConnection = ({ order, after }: PortfolioRequest) => Boolean(after) && !isUniform(order);

/** The rows after the cursor, split into parts that each match an index range; always true without a cursor. */
const cursorParts = ({ attributes }: PortfolioTable, request: PortfolioRequest): SQL[] =>
  request.after && !isLeftToConnection(request)
    ? follows(attributes, request.order, request.after)
    : [sql`true`];

/**
 * The first rows of each of the scopes `s`.
 * @param columns of the scopes
 * @param split if an index contains the listed columns: one lookup per value
 * @param many whether there may be hundreds of scopes
 */
type Branch = (
  scopes: SQL,
  where: SQL[],
  how: { columns: ScopeColumns; split?: boolean; many?: boolean },
) => SQL;

function branchOf(
  table: PortfolioTable,
  request: PortfolioRequest,
  { listed, implied, rest }: SplitFilter,
): Branch {
  const { filter, order } = request;
  const limit = request.first + request.offset;
  const rows = sql.identifier("t");
  const common = [...liveRows(table), ...conditions(rest, filter, rows, within(table, filter))];
  const lists = [
    ...listed.map((m) => ({ column: m.column!, values: filter![m.name] as string[] })),
    ...(implied ? [implied] : []),
  ].map(({ column, values }, i) => ({
    from: sql`unnest(${sql.value([...new Set(values)])}::text[]) ${sql.identifier(`v${i}`)} (${sql.identifier(`v${i}`)})`,
    where: sql`t.${sql.identifier(column)} = s.${sql.identifier(`v${i}`)}`,
  }));
  return (scopes, where, { columns: ofScope, split = false, many = false }) => {
    const all = [...where, ...common];
    if (split) all.push(...lists.map((l) => l.where));
    // PERF: as literals, so that a generic plan can estimate the number of rows.
    else all.push(...listed.map((m) => oneOf(m.column!, filter![m.name] as string[])));
    const sources = [sql`${scopes} s (id)`, ...(split ? lists.map((l) => l.from) : [])];
    const source = sql`(select * from ${sql.join(sources, " cross join ")})`;
    if (isLeftToConnection(request))
      return sql`select b.* from ${source} s cross join lateral (select ${usedColumns} from ${sql.identifier(...table.source)} t where ${sql.join(all, " and ")} ${fence}) b`;
    const isAlong = isIndexed(table, ofScope, order);
    const parts = cursorParts(table, request);
    const firstRows: FirstRows = (columns, further, cut) =>
      sql`(select ${columns} from ${sql.identifier(...table.source)} t where ${sql.join([...all, ...further], " and ")} order by ${orderSql(orderWithin(table, ofScope, order), rows)} ${cut})`;
    return sql.join(
      // Rows that are sorted are read once.
      (isAlong ? parts : [anyOf(parts)]).map((part) => {
        const ofPart: FirstRows = (columns, further, cut) => firstRows(columns, [part, ...further], cut);
        return (
          (many && isAlong ? bounded(table, order, source, ofPart, limit) : undefined) ??
          sql`select b.* from ${source} s cross join lateral ${ofPart(usedColumns, [], sql`limit ${sql.literal(limit)}`)} b`
        );
      }),
      " union all ",
    );
  };
}

/** One branch per reason for visibility; the branches are disjoint. */
function scopeBranches(table: PortfolioTable, request: PortfolioRequest, filter: SplitFilter): SQL[] {
  const branch = branchOf(table, request, filter);
  const ownProjects = table.columns.has("assignee_id")
    ? setOf("viewer_own_projects", table.permission)
    : null;
  const chosen = filter.projects && chosenProjects(filter.projects, request.filter);
  const branches = chosen
    ? [
        branch(
          ownProjects
            ? sql`(${chosen} except select unnest(${ownProjects}))`
            : sql`(select distinct c.id from ${chosen} c)`,
          [sql`t.project_id = s.id`],
          { columns: ["project_id"], split: true, many: true },
        ),
      ]
    : [
        onlyIf(
          "viewer_organizations",
          branch(
            sql`unnest(${setOf("viewer_organizations", table.permission)})`,
            [sql`t.organization_id = s.id`],
            { columns: ["organization_id"], split: true },
          ),
        ),
        onlyIf(
          "viewer_projects",
          branch(sql`unnest(${setOf("viewer_projects", table.permission)})`, [sql`t.project_id = s.id`], {
            columns: ["project_id"],
            split: true,
            many: true,
          }),
        ),
      ];
  if (ownProjects && !table.also) {
    branches.push(
      onlyIf(
        "viewer_own_projects",
        branch(
          chosen ? sql`(${chosen} intersect select unnest(${ownProjects}))` : sql`unnest(${ownProjects})`,
          [sql`t.assignee_id = (select app_public.current_user_id())`, sql`t.project_id = s.id`],
          { columns: ["assignee_id", "project_id"] },
        ),
      ),
    );
  }
  if (table.also) branches.push(alsoBranch(table, table.also, request, { branch, ownProjects, filter }));
  if (table.ownFinder !== undefined) {
    const common = [...liveRows(table), anyOf(cursorParts(table, request))];
    branches.push(ownRows(table, ownProjects, common, request.filter));
  }
  return branches;
}

/** Ids of the projects in a filter, given by id or slug. */
function chosenProjects({ name }: FilterMember, filter: PortfolioRequest["filter"]): SQL {
  const values = [filter![name]].flat() as string[];
  return sql`(select app_hidden.record_id('projects', i.id, ${sql.literal(name)}) as id from unnest(${sql.value([...new Set(values)])}::text[]) i (id))`;
}

/** Rows shown by the other permission, unless another branch has them. */
function alsoBranch(
  { permission }: PortfolioTable,
  { permission: other, nullColumns }: NonNullable<PortfolioTable["also"]>,
  request: PortfolioRequest,
  {
    branch,
    ownProjects,
    filter: { projects },
  }: { branch: Branch; ownProjects: SQL | null; filter: SplitFilter },
): SQL {
  const project = sql`t.project_id`;
  return onlyIf(
    "viewer_organizations",
    branch(
      sql`(select unnest(${setOf("viewer_organizations", other)}) as id except select unnest(${setOf("viewer_organizations", permission)}))`,
      [
        sql`t.organization_id = s.id`,
        ...nullColumns.map((column) => sql`t.${sql.identifier(column)} is null`),
        projects
          ? among(project, ownProjects)
          : sql`(${among(project, setOf("viewer_projects", permission))}) is not true`,
        ...(projects ? conditions([projects], request.filter, sql.identifier("t"), "portfolio") : []),
      ],
      { columns: ["organization_id"] },
    ),
  );
}

/** `(select columns … where further … order by … limit)` of one scope `s`. */
type FirstRows = (columns: SQL, further: SQL[], cut: SQL) => SQL;

/** Minimum and maximum of the types that orders begin with. */
const extremes = new Map([
  ["timestamptz", ["-infinity", "infinity"]],
  ["date", ["-infinity", "infinity"]],
  ["int4", ["-2147483648", "2147483647"]],
  ["uuid", ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"]],
]);

/**
 * The first `limit` rows of each of many scopes, restricted to those that can be among the first `limit` overall.
 *
 * PERF: each of hundreds of projects would return `limit` rows, nearly all of which are discarded. Therefore, the order
 * value of row number limit/n is read first in each of the n scopes, using only the index. From these values follows a
 * bound that at least `limit` rows satisfy, so rows beyond it are not read.
 * @returns undefined if the order begins with a nullable column or a type without extremes
 */
function bounded(
  { attributes }: PortfolioTable,
  [first]: OrderSpec[],
  scopes: SQL,
  firstRows: FirstRows,
  limit: number,
): SQL | undefined {
  const attribute = attributes[first!.column];
  const [least, greatest] = extremes.get(attribute?.codec.name ?? "") ?? [];
  if (!attribute?.notNull || least === undefined || first!.by || first!.from) return undefined;
  const descending = first!.direction === "desc";
  const column = sql`t.${sql.identifier(first!.column)}`;
  const towards = descending ? sql`desc` : sql`asc`;
  const cut = sql`limit ${sql.literal(limit)}`;
  // With the inner limit, the planner assumes that few rows are read.
  const place = sql`(select d.place from ${firstRows(sql`${column} as place`, [], cut)} d order by d.place ${towards} offset (select depth - 1 from share) limit 1)`;
  const isWithin = sql`${column} ${descending ? sql`>=` : sql`<=`} (select place from bound)`;
  const rows = firstRows(usedColumns, [isWithin], cut);
  return sql`(with s as materialized ${scopes},
    share as materialized (select ceil(${sql.literal(limit)}::float8 / count(*))::int as depth from s having count(*) > 1),
    bound as materialized (select coalesce((select p.place from s cross join lateral ${place} p where exists (select from share)
      order by p.place ${towards} offset (select ceil(${sql.literal(limit)}::float8 / depth)::int - 1 from share) limit 1),
      ${sql.literal((descending ? least : greatest)!)}::${attribute.codec.sqlType}) as place)
    select b.* from s cross join lateral ${rows} b)`;
}

/**
 * `(select …)` for the FROM of aggregates over a whole portfolio; undefined if that is the table under its policy.
 *
 * PERF: the condition of the policy has an alternative per scope, which no index supports, so counting the viewer's
 * rows would read the rows of all organizations. For a single scope, there is an index.
 */
export function portfolioRowsSql(table: PortfolioTable, filter: PortfolioRequest["filter"]): SQL | undefined {
  const { columns, permission } = table;
  // A filter by project is a separate index range, and extends beyond the portfolio.
  if (!columns.has("organization_id") || !columns.has("project_id") || within(table, filter) === "record")
    return undefined;
  const organizations = setOf("viewer_organizations", permission);
  const projects = setOf("viewer_projects", permission);
  const ownProjects = columns.has("assignee_id") ? setOf("viewer_own_projects", permission) : null;
  const live = columns.has("deleted_at") ? [sql`t.deleted_at is null`] : [];
  const part = (set: SetName, ...where: SQL[]) =>
    onlyIf(
      set,
      sql`select ${usedColumns} from ${sql.identifier(...table.source)} t where ${sql.join([...where, ...live], " and ")}`,
    );
  const parts = [
    part("viewer_organizations", among(sql`t.organization_id`, organizations), isNotEmpty(organizations)),
    part("viewer_projects", among(sql`t.project_id`, projects), isNotEmpty(projects)),
  ];
  if (ownProjects && !table.also)
    parts.push(
      part(
        "viewer_own_projects",
        sql`t.assignee_id = (select app_public.current_user_id())`,
        among(sql`t.project_id`, ownProjects),
      ),
    );
  if (table.also) {
    const others = setOf("viewer_organizations", table.also.permission);
    parts.push(
      part(
        "viewer_organizations",
        sql`t.organization_id = any (array(select unnest(${others}) except select unnest(${organizations})))`,
        ...table.also.nullColumns.map((column) => sql`t.${sql.identifier(column)} is null`),
        sql`(${among(sql`t.project_id`, projects)}) is not true`,
      ),
    );
  }
  if (table.ownFinder !== undefined) parts.push(ownRows(table, ownProjects, live, null));
  return marked(sql.join(parts, " union all "));
}

/** Condition that a column has one of some values, as literals. */
function oneOf(column: string, values: readonly string[]): SQL {
  const list = sql.join(
    [...new Set(values)].toSorted().map((value) => sql.literal(value)),
    ", ",
  );
  return sql`t.${sql.identifier(column)} = any (array[${list}]::text[])`;
}

/** The viewer's own records, such as a buyer's, unless another branch has them. */
function ownRows(
  table: PortfolioTable,
  ownProjects: SQL | null,
  common: SQL[],
  filter: PortfolioRequest["filter"],
): SQL {
  const byProject = within(table, filter) === "record";
  const inOwnProjects = among(sql`t.project_id`, ownProjects);
  const elsewhere = [
    // With a filter by project, the other branches cover everything that the policy shows, except in projects with
    // own leads only.
    byProject
      ? inOwnProjects
      : sql`t.organization_id <> all ((select ${setOf("viewer_organizations", table.permission)})::uuid[]) and (${among(sql`t.project_id`, setOf("viewer_projects", table.permission))}) is not true`,
    ...(table.columns.has("assignee_id") && !table.also
      ? [
          sql`(t.assignee_id is distinct from (select app_public.current_user_id()) or (${inOwnProjects}) is not true)`,
        ]
      : []),
  ];
  const where = [
    sql`t.id = any (array(select ${sql.identifier("app_hidden", table.ownFinder!)}()))`,
    ...elsewhere,
    ...common,
    ...conditions(table.members, filter, sql.identifier("t"), within(table, filter)),
  ];
  return sql`select ${usedColumns} from ${sql.identifier(...table.source)} t where ${sql.join(where, " and ")}`;
}

/** A list of one project may extend beyond the portfolio. */
export function within(
  table: Pick<PortfolioTable, "members">,
  filter: Record<string, unknown> | null | undefined,
): Within {
  return table.members.some((m) => m.column === "project_id" && filter?.[m.name] != null)
    ? "record"
    : "portfolio";
}

/**
 * Condition that a row belongs to the viewer's portfolio. The policies of most tables limit rows to it; records
 * without an organization, such as a user's own sign-ins, are in no portfolio. A filter by project extends beyond it,
 * as far as the policy permits.
 */
export function scope(
  table: Pick<PortfolioTable, "name" | "permission" | "members" | "hasPublicRows">,
  alias: SQL,
  filter: Record<string, unknown> | null | undefined,
): SQL {
  const isProjects = table.name[1] === "projects";
  const byProject = within(table, filter) === "record";
  if (!isProjects && (!table.hasPublicRows || byProject)) return sql`${alias}.organization_id is not null`;
  const project = sql`${alias}.${sql.identifier(isProjects ? "id" : "project_id")}`;
  return sql`(${among(sql`${alias}.organization_id`, setOf("viewer_organizations", table.permission))} or ${among(project, setOf("viewer_projects", table.permission))})`;
}

/**
 * The first rows of one project. PERF: for a viewer who only sees their own records in it, all others would be read
 * and discarded, and the planner cannot know for which projects that is the case. Here each project takes one of two
 * paths, along an index each; the policy still applies.
 * @param id the project
 */
export function projectSql(
  table: Pick<PortfolioTable, "source" | "permission" | "members" | "attributes" | "defaultOrder">,
  id: SQL,
  { filter, order, first, offset, after }: PortfolioRequest,
): SQL {
  const rows = sql.identifier("t");
  const own = sql`((select ${setOf("viewer_own_projects", table.permission)})::uuid[])`;
  const branch = (columns: ScopeColumns, ...where: SQL[]) => {
    const all = [sql`t.project_id = ${id}`, ...where, ...conditions(table.members, filter, rows, "record")];
    const mark = all.length > 1 + where.length ? customPlan : sql.blank;
    const source = sql.identifier(...table.source);
    const page = sql`order by ${orderSql(orderWithin(table, columns, order), rows)} limit ${sql.literal(first + offset)}`;
    return sql`(select ${mark} ${usedColumns} from ${source} t where ${sql.join(all, " and ")} ${page})`;
  };
  const parts = after ? follows(table.attributes, order, after).map((part) => [part]) : [[]];
  const branches = parts.flatMap((part) => [
    branch(["project_id"], sql`${id} <> all ${own}`, ...part),
    onlyIf(
      "viewer_own_projects",
      branch(
        ["assignee_id", "project_id"],
        sql`t.assignee_id = (select app_public.current_user_id())`,
        sql`t.project_id = any ${own}`,
        ...part,
      ),
    ),
  ]);
  return marked(sql.join(branches, " union all "));
}

/** Rows of a table, including the deleted ones that the viewer may see. */
export function withDeleted(table: Pick<PortfolioTable, "name" | "source">): SQL {
  return sql`(select * from ${sql.identifier(...table.source)} union all select * from ${deletedRows(table)})`;
}

/** The deleted rows of a table that the viewer may see. */
function deletedRows({ name }: Pick<PortfolioTable, "name">): SQL {
  return sql`app_hidden.deleted_records(null::${sql.identifier(...name)})`;
}
