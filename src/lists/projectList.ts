/** Project lists of which some viewers only see their own records: leads. */
import { lambda, type ExecutableStep } from "postgraphile/grafast";
import { TYPES, type PgCodec } from "postgraphile/@dataplan/pg";
import { sourceName, tableName, type AnyResource } from "../schema/recordTables.ts";
import { filterMembers } from "./filters.ts";
import { chosenOrder, pageSize, skip } from "./pageArguments.ts";
import { projectSql, withDeleted } from "./portfolio.ts";
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

/** Makes the list read the rows of each project along an index. */
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
    members: filterMembers(build, resource.codec as PgCodec),
  };
  const id = $list.placeholder($projectId, TYPES.uuid);
  $list.from = $list.deferredSQL(
    lambda(
      ["filter", "first", "offset", "orderBy"].map((name) => fieldArgs.getRaw(name)) as AnyType,
      ([filter, first, offset, orderBy]: AnyInput) =>
        filter?.includeDeleted === true
          ? withDeleted(table)
          : projectSql(table, id, {
              filter,
              order: chosenOrder(resource, orderBy, null),
              first: pageSize(first, 100),
              offset: skip(offset),
            }),
    ),
  );
}
