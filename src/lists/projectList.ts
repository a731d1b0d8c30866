/** Lists of a project in which some viewers only see the records assigned to them, such as leads. */
import { lambda, type ExecutableStep } from "postgraphile/grafast";
import { TYPES, type PgCodec } from "postgraphile/@dataplan/pg";
import { sql } from "postgraphile/pg-sql2";
import { sourceName, tableName, type AnyResource } from "../schema/recordTables.ts";
import { filterMembers } from "./filters.ts";
import { cursorValues } from "./cursors.ts";
import { isUniform } from "./follows.ts";
import { defaultOrder, reversed, type OrderSpec } from "./orders.ts";
import { chosenOrder, pageSize, pageSizes, skip } from "./pageArguments.ts";
import { projectSql, withDeleted, type PortfolioRequest } from "./portfolio.ts";
import type { AnyStep, AnyScope, AnyType, AnyInput } from "../schema/stackTypes.ts";
import type { FieldArgs } from "postgraphile/grafast";

/** Whether a field is such a list: records are visible either with access to the entire project or by assignment. */
export function isProjectList(scope: AnyScope): boolean {
  const { isPgManyRelationListField, pgRelationDetails: details, pgFieldResource: resource } = scope;
  if (!isPgManyRelationListField || details?.codec.name !== "projects") return false;
  const tags = resource.extensions?.tags;
  return (
    details.registry.pgRelations.projects[details.relationName].remoteAttributes[0] === "project_id" &&
    "assignee_id" in resource.codec.attributes &&
    typeof tags?.portfolio === "string" &&
    tags.ownFinder === undefined &&
    tags.publicRows === undefined
  );
}

/** The part of each project that a list or connection reads; undefined if it reads all rows. */
type Wanted = Omit<PortfolioRequest, "filter" | "order"> & { order?: OrderSpec[] };

/** The page of a connection, and one more row, which shows whether there is a further page. */
function pageOf(
  resource: AnyResource,
  order: OrderSpec[],
  given: { first?: unknown; last?: unknown; after?: unknown; before?: unknown },
): Wanted | undefined {
  const { first, last } = pageSizes(given.first, given.last);
  const backwards = first === null;
  const [from, until] = backwards ? [given.before, given.after] : [given.after, given.before];
  const size = backwards ? last! : first;
  if (until != null || (from != null && !isUniform(order))) return undefined;
  return {
    order: backwards ? reversed(order) : order,
    first: size + 1,
    offset: 0,
    after: from == null ? null : cursorValues(from, order, resource.codec.attributes),
  };
}

/** Makes the list, or the list of a connection, read the rows of each project along an index. */
export function rowsOfProject(
  build: GraphileBuild.Build,
  resource: AnyResource,
  $list: AnyStep,
  $projectId: ExecutableStep,
  fieldArgs: FieldArgs,
): void {
  const table = {
    name: tableName(resource),
    source: sourceName(resource),
    permission: resource.extensions!.tags!.portfolio as string,
    attributes: resource.codec.attributes,
    members: filterMembers(build, resource.codec as PgCodec),
    defaultOrder: defaultOrder(resource),
  };
  const id = $list.placeholder($projectId, TYPES.uuid);
  const isConnection = "$after" in fieldArgs;
  const names = isConnection
    ? ["filter", "orderBy", "first", "last", "after", "before"]
    : ["filter", "orderBy", "first", "offset"];
  const allRows = (filter: AnyInput) =>
    filter?.includeDeleted === true ? withDeleted(table) : sql.identifier(...table.source);
  $list.from = $list.deferredSQL(
    lambda(names.map((name) => fieldArgs.getRaw(name)) as AnyType, ([filter, orderBy, ...page]: AnyInput) => {
      const order = chosenOrder(resource, orderBy, null);
      const [first, second, after, before] = page;
      const wanted = isConnection
        ? pageOf(resource, order, { first, last: second, after, before })
        : { first: pageSize(first, 100), offset: skip(second) };
      if (!wanted || filter?.includeDeleted === true) return allRows(filter);
      return projectSql(table, id, { filter, order, ...wanted });
    }),
  );
  if (!isConnection) return;
  // Fields over all rows, such as the total count.
  const everything = $list.deferredSQL(lambda(fieldArgs.getRaw("filter"), allRows));
  const clone = $list.connectionClone.bind($list);
  $list.connectionClone = (...mode: unknown[]) => {
    const $clone = clone(...mode);
    $clone.from = everything;
    return $clone;
  };
}
