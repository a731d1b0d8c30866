/** The mutation of a volatile function: its arguments are the fields of `input`. */
import { context as contextStepOf, get, lambda, type ExecutableStep } from "postgraphile/grafast";
import type { GraphQLOutputType } from "postgraphile/graphql";
import { TYPES, type PgResourceParameter } from "postgraphile/@dataplan/pg";
import { argumentDescriptions, baseCodec, camel, inputTypeOf } from "../schema/codecNames.ts";
import type { AnyResource } from "../schema/recordTables.ts";
import { callInMutation } from "./callInMutation.ts";
import { functionCall, sentParameter } from "./functionCall.ts";
import {
  argumentValues,
  columnMembers,
  describeId,
  isGiven,
  transformOf,
  transformsOf,
  type Member,
} from "./inputFields.ts";
import type { Operation } from "./operation.ts";

/** The mutation of a function that the viewer may execute; `@withoutId` if another argument identifies the record. */
export function functionOperation(build: GraphileBuild.Build, resource: AnyResource): Operation {
  const { GraphQLNonNull } = build.graphql;
  const functionName = resource.extensions?.pg?.name ?? resource.name;
  const fieldName = camel(functionName);
  const tags = resource.extensions?.tags as Record<string, unknown> | undefined;
  const parameters = (resource.parameters ?? []) as PgResourceParameter[];
  const spreads = parameters[0]?.name === "input" && baseCodec(parameters[0].codec) === TYPES.jsonb;
  const own = parameters.slice(spreads ? 1 : 0);
  // Without a record as its result, it is named after its subject: `deleteLeadSource`.
  const recordType = resource.codec.extensions?.isTableLike
    ? build.inflection.tableType(resource.codec)
    : fieldName.replace(/^[a-z]+/, "");
  let members: Member[] | undefined;
  const getMembers = () =>
    (members ??= [
      ...(spreads
        ? columnMembers(build, resource.codec, fieldName.startsWith("create") ? "insert" : "update").filter(
            ({ name }) => name !== "id" || tags?.withoutId === undefined,
          )
        : []),
      ...argumentMembers(build, own, argumentDescriptions(tags), recordType),
    ]);
  const tableOfResult = resource.codec.extensions?.pg?.name as string | undefined;
  const uploadTarget = spreads ? (tableOfResult ?? fieldName) : fieldName;
  return {
    fieldName,
    inputTypeName: `${fieldName[0]!.toUpperCase()}${fieldName.slice(1)}Input`,
    description: resource.description ?? fieldName,
    deprecationReason: typeof tags?.deprecated === "string" ? tags.deprecated : undefined,
    becomes: typeof tags?.becomes === "string" ? tags.becomes : undefined,
    eachTime: tags?.eachTime !== undefined,
    uploadTarget,
    members: getMembers,
    transforms: () => transformsOf([...getMembers(), ...own]),
    outputType: () => {
      const type = build.getGraphQLTypeByPgCodec(resource.codec, "output") as GraphQLOutputType;
      return resource.isUnique ? type : new build.graphql.GraphQLList(new GraphQLNonNull(type));
    },
    plan($input, $repeat) {
      const $values = lambda([$input, contextStepOf(), $repeat], ([input, context, repeat]) =>
        argumentValues(input as Record<string, unknown>, context as Grafast.Context, {
          spreads,
          members: getMembers(),
          own,
          fieldName,
          uploadTarget,
          repeat,
        }),
      );
      // Work before the statement also runs in the order of the fields, and once.
      if (own.some(({ codec }) => transformOf(codec))) $values.hasSideEffects = true;
      return callInMutation(resource, {
        parameters: parameters.map(sentParameter),
        steps: parameters.map((parameter) => get($values, parameter.name!) as ExecutableStep),
        call: (given) => functionCall(resource, parameters, given),
        $repeat,
      }) as unknown as ExecutableStep;
    },
  };
}

/** Fields of `input` that are arguments of the function. */
function argumentMembers(
  build: GraphileBuild.Build,
  parameters: readonly PgResourceParameter[],
  descriptions: ReturnType<typeof argumentDescriptions>,
  recordType: string,
): Member[] {
  const { GraphQLNonNull } = build.graphql;
  return parameters
    .filter(({ codec }) => !isGiven(codec))
    .map((parameter): Member => {
      const name = camel(parameter.name!);
      const type = inputTypeOf(build, parameter.codec);
      return {
        name,
        column: parameter.name!,
        codec: parameter.codec,
        type: !parameter.optional ? new GraphQLNonNull(type) : type,
        description:
          descriptions.get(name) ?? (name === "id" ? describeId(recordType) : idDescription(parameter.name!)),
      };
    });
}

function idDescription(name: string): string {
  return name.endsWith("_id")
    ? `The ${name.slice(0, -3).replaceAll("_", " ")}.`
    : `The ${name.replaceAll("_", " ")}.`;
}
