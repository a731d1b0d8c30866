/** The tables of records, for several plugins. */
import type { AnyResource } from "./stackTypes.ts";

export type { AnyResource } from "./stackTypes.ts";

/** PERF: called once per field of the schema, and matching behaviors is slow. */
const known = new WeakMap<object, AnyResource[]>();

/** Tables of app_public with a primary key `id` that the API may read. */
export function recordTables(build: GraphileBuild.Build): AnyResource[] {
  let tables = known.get(build.input);
  if (!tables) known.set(build.input, (tables = findRecordTables(build)));
  return tables;
}

function findRecordTables(build: GraphileBuild.Build): AnyResource[] {
  return (Object.values(build.pgResources) as AnyResource[]).filter(
    (resource) =>
      !resource.parameters &&
      !resource.isVirtual &&
      Boolean(resource.codec.attributes?.id) &&
      resource.extensions?.pg?.schemaName === "app_public" &&
      build.behavior.pgResourceMatches(resource, "resource:select"),
  );
}

/** Where the rows of a table are read: the table, or its masking view (see MaskedTablesPlugin). */
export function sourceName(resource: AnyResource): [string, string] {
  return (
    (resource.extensions as { readFrom?: [string, string] } | undefined)?.readFrom ?? tableName(resource)
  );
}

/** `sql.identifier` parts of a table. */
export function tableName(resource: AnyResource): [string, string] {
  return [resource.extensions!.pg!.schemaName!, resource.extensions!.pg!.name!];
}
