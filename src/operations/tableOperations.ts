/** createX (uploadX if a column is a file), updateX and deleteX of a table, according to its grants. */
import { context as contextStepOf, get, lambda, object, type ExecutableStep } from "postgraphile/grafast";
import { TYPES, type PgCodec } from "postgraphile/@dataplan/pg";
import type { GraphQLOutputType } from "postgraphile/graphql";
import { sql } from "postgraphile/pg-sql2";
import { withArticle, clauseOf, introduced } from "../schema/nouns.ts";
import { tableName, type AnyResource } from "../schema/recordTables.ts";
import { callInMutation } from "./callInMutation.ts";
import { operationNameOf } from "./deletePayload.ts";
import { columnMembers, describeId, toColumns, transformsOf, type Member } from "./inputFields.ts";
import type { Operation } from "./operation.ts";
import type { AnyType } from "../schema/stackTypes.ts";

function recordStatement(
  resource: AnyResource,
  functionName: string,
  argument: { step: ExecutableStep; pgCodec: PgCodec },
  $repeat: ExecutableStep,
) {
  const table = sql.identifier(...tableName(resource));
  return callInMutation(resource, {
    parameters: [{ name: "input", codec: argument.pgCodec, required: true, notNull: true }],
    steps: [argument.step],
    call: (given) => sql`app_hidden.${sql.identifier(functionName)}(null::${table}, ${given[0]![1]})`,
    $repeat,
  });
}

/** The mutations that follow from grants on the table. */
export function tableOperations(build: GraphileBuild.Build, resource: AnyResource): Operation[] {
  const typeName = build.inflection.tableType(resource.codec);
  const extensions = resource.extensions ?? {};
  const operations: Operation[] = [];
  const outputType = () => build.getGraphQLTypeByPgCodec(resource.codec, "output") as GraphQLOutputType;
  // Name in mutations, if it differs from the type.
  const operationName = operationNameOf(build, resource);
  const isFile = Object.values(resource.codec.attributes as Record<string, AnyType>).some(
    (a) => a.codec.extensions?.tags?.scalar === "Upload",
  );
  const [, uploadTarget] = tableName(resource);
  const creates = isFile ? "upload" : "create";
  const subject = withArticle(typeName);
  const clause = clauseOf(resource.codec.description);
  for (const how of ["insert", "update"] as const) {
    const granted = Object.values(resource.codec.attributes as Record<string, AnyType>).some((a) =>
      how === "insert" ? a.extensions?.canInsert : a.extensions?.canUpdate,
    );
    if (!granted) continue;
    const fieldName = `${how === "insert" ? creates : "update"}${operationName}`;
    let members: Member[] | undefined;
    const getMembers = () => (members ??= columnMembers(build, resource.codec, how));
    operations.push({
      fieldName,
      inputTypeName: `${fieldName[0]!.toUpperCase()}${fieldName.slice(1)}Input`,
      description:
        how === "insert"
          ? `${isFile ? "Uploads" : "Creates"} ${introduced(subject, clause)}.`
          : `Changes ${subject}. Omitted fields keep their values; null clears an optional field.`,
      deprecationReason: undefined,
      uploadTarget,
      members: getMembers,
      transforms: () => transformsOf(getMembers()),
      outputType,
      plan: ($input, $repeat) =>
        recordStatement(
          resource,
          how === "insert" ? "create_record" : "update_record",
          {
            step: lambda([$input, contextStepOf()], ([input, context]) =>
              toColumns(getMembers(), input as Record<string, unknown>, context as Grafast.Context, {
                fieldName,
                uploadTarget,
              }),
            ),
            pgCodec: TYPES.jsonb,
          },
          $repeat,
        ) as unknown as ExecutableStep,
    });
  }
  if (extensions.canDelete) {
    const { GraphQLNonNull, GraphQLID } = build.graphql;
    operations.push({
      fieldName: `delete${operationName}`,
      inputTypeName: `Delete${operationName}Input`,
      description: `Deletes ${subject}. Refused with CONFLICT while other records depend on it; the error names them.`,
      deprecationReason: undefined,
      uploadTarget,
      transforms: () => [],
      members: () => [
        {
          name: "id",
          column: "id",
          codec: TYPES.text,
          type: new GraphQLNonNull(GraphQLID),
          description: describeId(typeName),
        },
      ],
      outputType: () => build.getOutputTypeByName(`Delete${operationName}Payload`),
      plan: ($input, $repeat) =>
        object({
          record: recordStatement(
            resource,
            "delete_record",
            { step: get($input, "id") as ExecutableStep, pgCodec: TYPES.text },
            $repeat,
          ),
        }),
    });
  }
  return operations;
}
