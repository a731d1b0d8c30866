/** The mutation behind a volatile function: its arguments are the members of `input`. */
import { context as contextStepOf, get, lambda, type ExecutableStep } from "postgraphile/grafast";
import type { GraphQLOutputType } from "postgraphile/graphql";
import { TYPES, type PgCodec, type PgResourceParameter } from "postgraphile/@dataplan/pg";
import { sql, type SQL } from "postgraphile/pg-sql2";
import { argumentDescriptions, baseCodec, camel, inputTypeOf } from "../schema/codecNames.ts";
import { tableName, type AnyResource } from "../schema/recordTables.ts";
import { callInMutation } from "./callInMutation.ts";
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

/** Tables whose records have a slug; mirrors app_hidden.has_slug. */
const SLUG_TABLES: Record<string, string> = {
  project: "projects",
  organization: "organizations",
  user: "users",
};

/** The operation of a function that the viewer may execute; `@withoutId` where another argument says which record. */
export function functionOperation(build: GraphileBuild.Build, resource: AnyResource): Operation {
  const { GraphQLNonNull } = build.graphql;
  const functionName = resource.extensions?.pg?.name ?? resource.name;
  const fieldName = camel(functionName);
  const tags = resource.extensions?.tags as Record<string, unknown> | undefined;
  const told = argumentDescriptions(tags);
  const parameters = (resource.parameters ?? []) as PgResourceParameter[];
  const spreads = parameters[0]?.name === "input" && baseCodec(parameters[0].codec) === TYPES.jsonb;
  const own = parameters.slice(spreads ? 1 : 0);
  let members: Member[] | undefined;
  const getMembers = () =>
    (members ??= [
      ...(spreads
        ? columnMembers(build, resource.codec, fieldName.startsWith("create") ? "insert" : "update").filter(
            ({ name }) => name !== "id" || tags?.withoutId === undefined,
          )
        : []),
      ...own
        .filter(({ codec }) => !isGiven(codec))
        .map((parameter): Member => {
          const name = camel(parameter.name!);
          const type = inputTypeOf(build, parameter.codec);
          return {
            name,
            column: parameter.name!,
            codec: parameter.codec,
            type: !parameter.optional ? new GraphQLNonNull(type) : type,
            description: told.get(name) ?? (name === "id" ? describeId : idDescription(parameter.name!)),
          };
        }),
    ]);
  const isSlugArgument = (parameter: PgResourceParameter) => baseCodec(parameter.codec) === TYPES.uuid;
  const tableOfResult = resource.codec.extensions?.pg?.name as string | undefined;
  const uploadTarget = spreads ? (tableOfResult ?? fieldName) : fieldName;
  /** Slugs become ids in SQL; scalars are checked one by one, so that a refusal names the argument. */
  const toSql = (name: string, value: SQL, others: SQL): SQL => {
    const parameter = parameters.find((p) => p.name === name)!;
    if (isCheckedArgument(parameter.codec)) {
      const type = parameter.codec.sqlType;
      return sql`app_hidden.checked(${value}, ${typeOf(parameter)}::regtype, ${sql.literal(camel(name))}, ${others})::${type}`;
    }
    if (!isSlugArgument(parameter)) return value;
    const table = name === "id" ? (tableOfResult ?? "") : (SLUG_TABLES[name.replace(/_id$/, "")] ?? "");
    return sql`app_hidden.record_id(${sql.literal(table)}, ${value}, ${sql.literal(camel(name))})`;
  };
  const typeOf = ({ codec }: PgResourceParameter) => sql.literal(sql.compile(codec.sqlType).text);
  /** What app_hidden.checked is told of other arguments, so that it refuses all that are bad. */
  const asOthers = (others: readonly [PgResourceParameter, SQL][]): SQL => {
    const each = others.map(
      ([parameter, value]) =>
        sql`jsonb_build_object('field', ${sql.literal(camel(parameter.name!))}, 'value', ${value}, 'type', ${typeOf(parameter)})`,
    );
    return each.length === 0 ? sql`'[]'` : sql`jsonb_build_array(${sql.join(each, ", ")})`;
  };
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
      // What is done before the statement is done in the order of the fields too, and once.
      if (own.some(({ codec }) => transformOf(codec))) $values.hasSideEffects = true;
      return callInMutation(resource, {
        parameters: parameters.map((parameter) =>
          isSlugArgument(parameter) || isCheckedArgument(parameter.codec)
            ? { ...parameter, codec: TYPES.text }
            : parameter,
        ),
        steps: parameters.map((parameter) => get($values, parameter.name!) as ExecutableStep),
        call: (given) => {
          const [first, ...others] = given
            .map(([name, value]) => [parameters.find((p) => p.name === name)!, value] as const)
            .filter(([{ codec }]) => isCheckedArgument(codec)) as [PgResourceParameter, SQL][];
          // The first one that is looked at answers for all.
          const othersOf = (name: string) => asOthers(name === first?.[0].name ? others : []);
          return sql`${sql.identifier(...tableName(resource))}(${sql.join(
            given.map(
              ([name, value]) => sql`${sql.identifier(name)} => ${toSql(name, value, othersOf(name))}`,
            ),
            ", ",
          )})`;
        },
        $repeat,
      }) as unknown as ExecutableStep;
    },
  };
}

/** A scalar domain over text. */
function isCheckedArgument(codec: PgCodec): boolean {
  const tags = codec.extensions?.tags;
  return Boolean(codec.domainOfCodec) && baseCodec(codec) === TYPES.text && !tags?.enum && !tags?.transform;
}

function idDescription(name: string): string {
  return name.endsWith("_id")
    ? `The ${name.slice(0, -3).replaceAll("_", " ")}.`
    : `The ${name.replaceAll("_", " ")}.`;
}
