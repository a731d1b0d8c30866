/**
 * The SQL of a portfolio list: the first rows of a table over everything that the viewer's organizations own or are
 * affiliated with.
 *
 * PERF: an order over `organization_id = any (…)` sorts the whole portfolio, since such a condition loses the order of
 * the index. So the rows are taken organization by organization (and further project by project) along the index, at
 * most as many as the answer holds, and merged. The policy of the table still decides what is seen.
 */
import { sql, type SQL } from "postgraphile/pg-sql2";
import { conditions, type FilterMember } from "./filters.ts";
import { orderSql, type OrderSpec } from "./orders.ts";

export interface PortfolioTable {
  name: [schema: string, table: string];
  permission: string;
  columns: Set<string>;
  members: FilterMember[];
  /** The order that indexes by organization, project and assignee hold. */
  indexedOrder: OrderSpec[];
  /** Columns that stand between scope and order in an index: one lookup per value of their filter. */
  listColumns: string[];
}

export interface PortfolioRequest {
  filter: Record<string, unknown> | null | undefined;
  order: OrderSpec[];
  first: number;
  offset: number;
}

/** `(select …)` for the FROM of a list; the rows come in order, already cut. */
export function portfolioSql(table: PortfolioTable, request: PortfolioRequest): SQL {
  const limit = request.first + request.offset;
  const rows = sql.identifier("t");
  const name = sql.identifier(...table.name);
  const page = sql`order by ${orderSql(request.order, sql.identifier("u"))} limit ${sql.literal(request.first)} offset ${sql.literal(request.offset)}`;
  const includeDeleted = request.filter?.includeDeleted === true && table.columns.has("deleted_at");
  const along =
    !includeDeleted &&
    table.columns.has("organization_id") &&
    table.columns.has("project_id") &&
    JSON.stringify(request.order) === JSON.stringify(table.indexedOrder);

  if (!along) {
    const source = includeDeleted ? withDeleted(name) : name;
    const where = [scope(table, rows), ...conditions(table.members, request.filter, rows)];
    return sql`(select u.* from (select t.* from ${source} t where ${sql.join(where, " and ")}) u ${page})`;
  }

  const listed = table.members.filter(
    (m) => m.column && table.listColumns.includes(m.column) && request.filter?.[m.name] != null,
  );
  const others = table.members.filter((m) => !listed.includes(m));
  const projectMember = others.find((m) => m.column === "project_id" && request.filter?.[m.name] != null);
  const lists = listed.map((m, i) => ({
    from: sql`unnest(${sql.value([...new Set(request.filter![m.name] as string[])])}::text[]) ${sql.identifier(`v${i}`)} (value)`,
    where: sql`t.${sql.identifier(m.column!)} = ${sql.identifier(`v${i}`)}.value`,
  }));
  const live = table.columns.has("deleted_at") ? [sql`t.deleted_at is null`] : [];
  const branch = (from: SQL | null, where: SQL[], members: FilterMember[]) => {
    const all = [
      ...where,
      ...live,
      ...lists.map((l) => l.where),
      ...conditions(members, request.filter, rows),
    ];
    const taken = sql`(select t.* from ${name} t where ${sql.join(all, " and ")} order by ${orderSql(request.order, rows)} limit ${sql.literal(limit)})`;
    const sources = [...(from ? [from] : []), ...lists.map((l) => l.from)];
    return sources.length === 0
      ? sql`select b.* from ${taken} b`
      : sql`select b.* from ${sql.join(sources, " cross join ")} cross join lateral ${taken} b`;
  };

  const permission = sql.literal(table.permission);
  const branches: SQL[] = [];
  if (projectMember) {
    const values = [...new Set(request.filter![projectMember.name] as string[])];
    const resolved = sql`(select distinct app_hidden.record_id('projects', i.id, ${sql.literal(projectMember.name)}) as id from unnest(${sql.value(values)}::text[]) i (id)) p`;
    branches.push(
      branch(
        resolved,
        [sql`t.project_id = p.id`],
        others.filter((m) => m !== projectMember),
      ),
    );
  } else {
    branches.push(
      branch(
        sql`app_hidden.viewer_organizations(${permission}) o (id)`,
        [sql`t.organization_id = o.id`],
        others,
      ),
    );
    branches.push(
      branch(sql`app_hidden.viewer_projects(${permission}) p (id)`, [sql`t.project_id = p.id`], others),
    );
    if (table.columns.has("assignee_id")) {
      branches.push(
        branch(
          null,
          [
            sql`t.assignee_id = (select app_public.current_user_id())`,
            sql`t.project_id = any (array(select app_hidden.viewer_own_projects(${permission})))`,
          ],
          others,
        ),
      );
    }
  }
  return sql`(select u.* from (${sql.join(branches, " union all ")}) u ${page})`;
}

/** The condition that a row belongs to the viewer's portfolio; true for tables that their policy limits to it. */
export function scope(
  table: { name: [string, string]; permission: string; columns: Set<string> },
  alias: SQL,
): SQL {
  if (table.name[1] !== "projects") return sql`true`;
  const permission = sql.literal(table.permission);
  return sql`(${alias}.organization_id = any (array(select app_hidden.viewer_organizations(${permission}))) or ${alias}.id = any (array(select app_hidden.viewer_projects(${permission}))))`;
}

/** The rows of a table with those deleted ones that the viewer may see. */
export function withDeleted(name: SQL): SQL {
  return sql`(select * from ${name} union all select * from app_hidden.deleted_records(null::${name}))`;
}
