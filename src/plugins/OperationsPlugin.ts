/**
 * Mutations: one field per operation, exactly one argument `input`, the record itself as the answer.
 *
 * They come from grants and functions, so that an operation needs no TypeScript:
 * - a table with INSERT, UPDATE or DELETE granted gets createX, updateX, deleteX, carried out by
 *   app_hidden.create_record, update_record and delete_record as the viewer;
 * - a volatile function is the mutation of its name, its arguments are the members of `input`; where the first argument
 *   is `input jsonb`, the granted columns of the table that it returns are members too;
 * - a function named like a generated operation replaces it.
 */
import {
  constant,
  context as contextStepOf,
  get,
  lambda,
  object,
  type ExecutableStep,
} from "postgraphile/grafast";
import { pgSelect, TYPES, type PgCodec, type PgResourceParameter } from "postgraphile/@dataplan/pg";
import { sql, type SQL } from "postgraphile/pg-sql2";
import type { GraphQLInputFieldConfig, GraphQLInputType, GraphQLObjectType } from "postgraphile/graphql";
import { camel, inputTypeOf, tagTexts, toDatabaseNames, baseCodec } from "./codecs.ts";
import { recordTables, type AnyResource } from "./tables.ts";

/** Replaces a plaintext before SQL sees it, such as a password by its hash; named by the tag @transform of a domain. */
export type ArgumentTransform = (
  value: string,
  details: { member: string; operation: string; input: Record<string, unknown>; context: Grafast.Context },
) => string | Promise<string>;

declare global {
  namespace GraphileConfig {
    interface Plugins {
      OperationsPlugin: true;
    }
  }
  namespace GraphileBuild {
    interface SchemaOptions {
      /** Implementations of the tag @transform. */
      argumentTransforms?: Record<string, ArgumentTransform>;
    }
    interface BehaviorStrings {
      operation: true;
    }
  }
}

interface Member {
  name: string;
  column: string;
  codec: PgCodec;
  type: GraphQLInputType;
  description: string | undefined;
}

interface Operation {
  fieldName: string;
  inputTypeName: string;
  description: string;
  deprecationReason: string | undefined;
  members(): Member[];
  outputType(): GraphQLObjectType | any;
  plan($input: ExecutableStep): ExecutableStep;
}

/** Tables whose records have a slug; mirrors app_hidden.has_slug. */
const SLUG_TABLES: Record<string, string> = {
  project: "projects",
  organization: "organizations",
  user: "users",
};

export const OperationsPlugin: GraphileConfig.Plugin = {
  name: "OperationsPlugin",
  version: "1.0.0",
  after: ["PgCustomTypeFieldPlugin", "PgRBACPlugin"],
  schema: {
    behaviorRegistry: {
      add: { operation: { description: "is a mutation function an operation?", entities: ["pgResource"] } },
    },
    entityBehavior: {
      pgResource: {
        inferred(behavior, resource) {
          return resource.isMutation ? [behavior, "operation"] : behavior;
        },
        override(behavior, resource) {
          const canExecute = resource.extensions?.canExecute !== false;
          return resource.isMutation
            ? [behavior, "-mutationField", ...(canExecute ? [] : ["-operation" as const])]
            : behavior;
        },
      },
    },
    hooks: {
      init: {
        after: ["PgCodecs"],
        callback(_, build) {
          for (const operation of operationsOf(build)) {
            build.registerInputObjectType(
              operation.inputTypeName,
              {},
              () => ({
                description: `Input of ${operation.fieldName}.`,
                fields: () =>
                  Object.fromEntries(
                    operation.members().map((member): [string, GraphQLInputFieldConfig] => [
                      member.name,
                      {
                        type: member.type,
                        ...(member.description ? { description: member.description } : {}),
                      },
                    ]),
                  ),
              }),
              `OperationsPlugin: ${operation.fieldName}`,
            );
          }
          for (const resource of deletableTables(build)) registerDeletePayload(build, resource);
          return _;
        },
      },
      GraphQLObjectType_fields(fields, build, context) {
        if (!context.scope.isRootMutation) return fields;
        const { GraphQLNonNull } = build.graphql;
        for (const operation of operationsOf(build)) {
          fields = build.extend(
            fields,
            {
              [operation.fieldName]: context.fieldWithHooks(
                { fieldName: operation.fieldName } as any,
                () => ({
                  type: operation.outputType(),
                  description: operation.description,
                  ...(operation.deprecationReason ? { deprecationReason: operation.deprecationReason } : {}),
                  args: {
                    input: {
                      description: "What to do.",
                      type: new GraphQLNonNull(build.getInputTypeByName(operation.inputTypeName)),
                    },
                  },
                  plan: (_$root: unknown, fieldArgs: any) => operation.plan(fieldArgs.getRaw("input")),
                }),
              ),
            },
            `OperationsPlugin: ${operation.fieldName}`,
          );
        }
        return fields;
      },
    },
  },
};

const cache = new WeakMap<object, Operation[]>();

function operationsOf(build: GraphileBuild.Build): Operation[] {
  const known = cache.get(build.input);
  if (known) return known;
  const operations = new Map<string, Operation>();
  for (const resource of recordTables(build)) {
    for (const operation of tableOperations(build, resource)) operations.set(operation.fieldName, operation);
  }
  for (const resource of Object.values(build.pgResources) as AnyResource[]) {
    if (
      resource.isMutation &&
      resource.parameters &&
      build.behavior.pgResourceMatches(resource, "operation")
    ) {
      const operation = functionOperation(build, resource);
      operations.set(operation.fieldName, operation);
    }
  }
  const list = [...operations.values()];
  cache.set(build.input, list);
  return list;
}

function deletableTables(build: GraphileBuild.Build): AnyResource[] {
  const replaced = new Set(
    (Object.values(build.pgResources) as AnyResource[])
      .filter((r) => r.isMutation)
      .map((r) => camel(r.extensions?.pg?.name ?? "")),
  );
  return recordTables(build).filter(
    (r) => r.extensions?.canDelete && !replaced.has(`delete${build.inflection.tableType(r.codec)}`),
  );
}

const describeId = "The record to work on.";
const describeVersion =
  "The version that the caller has read; another present version is refused with VERSION_MISMATCH.";

function columnMembers(build: GraphileBuild.Build, codec: PgCodec, how: "insert" | "update"): Member[] {
  const { GraphQLNonNull, GraphQLID, GraphQLInt } = build.graphql;
  const members: Member[] = [];
  if (how === "update") {
    members.push({
      name: "id",
      column: "id",
      codec: TYPES.text,
      type: new GraphQLNonNull(GraphQLID),
      description: describeId,
    });
  }
  for (const [column, attribute] of Object.entries(codec.attributes ?? {}) as [string, any][]) {
    if (!(how === "insert" ? attribute.extensions?.canInsert : attribute.extensions?.canUpdate)) continue;
    const type = inputTypeOf(build, attribute.codec);
    const required =
      how === "insert" &&
      attribute.notNull &&
      !attribute.hasDefault &&
      !attribute.extensions?.tags?.insertOptional &&
      column !== "slug";
    members.push({
      name: camel(column),
      column,
      codec: attribute.codec,
      type: required ? new GraphQLNonNull(type) : type,
      description: attribute.description,
    });
  }
  if (how === "update" && codec.attributes?.version) {
    members.push({
      name: "expectedVersion",
      column: "expected_version",
      codec: TYPES.int,
      type: GraphQLInt,
      description: describeVersion,
    });
  }
  return members;
}

/** The object that create_record and update_record take: column names, only the members that were given. */
function toColumns(members: Member[], input: Record<string, unknown>): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const member of members) {
    if (input[member.name] !== undefined)
      result[member.column] = toDatabaseNames(member.codec, input[member.name], member.name);
  }
  return result;
}

function recordStatement(
  resource: AnyResource,
  functionName: string,
  argument: { step: ExecutableStep; pgCodec: PgCodec },
) {
  const { schemaName, name } = resource.extensions!.pg!;
  const table = sql.identifier(schemaName!, name!);
  return pgSelect({
    resource,
    identifiers: [],
    parameters: [{ name: "input", codec: argument.pgCodec, required: true, notNull: true }] as any,
    args: [argument] as any,
    from: ((digest: { placeholder: SQL }) =>
      sql`app_hidden.${sql.identifier(functionName)}(null::${table}, ${digest.placeholder})`) as any,
    mode: "mutation",
    joinAsLateral: true,
  }).single();
}

function tableOperations(build: GraphileBuild.Build, resource: AnyResource): Operation[] {
  const typeName = build.inflection.tableType(resource.codec);
  const extensions = resource.extensions ?? {};
  const operations: Operation[] = [];
  const outputType = () => build.getGraphQLTypeByPgCodec(resource.codec, "output");
  const subject = typeName.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  for (const how of ["insert", "update"] as const) {
    const granted = Object.values(resource.codec.attributes as Record<string, any>).some((a) =>
      how === "insert" ? a.extensions?.canInsert : a.extensions?.canUpdate,
    );
    if (!granted) continue;
    const fieldName = `${how === "insert" ? "create" : "update"}${typeName}`;
    let members: Member[] | undefined;
    const getMembers = () => (members ??= columnMembers(build, resource.codec, how));
    operations.push({
      fieldName,
      inputTypeName: `${fieldName[0]!.toUpperCase()}${fieldName.slice(1)}Input`,
      description:
        how === "insert"
          ? `Creates a record: ${subject}.`
          : `Changes a record: ${subject}. Members that are left out stay as they are.`,
      deprecationReason: undefined,
      members: getMembers,
      outputType,
      plan: ($input) =>
        recordStatement(resource, how === "insert" ? "create_record" : "update_record", {
          step: lambda($input, (input) => toColumns(getMembers(), input as Record<string, unknown>)),
          pgCodec: TYPES.jsonb,
        }),
    });
  }
  if (extensions.canDelete) {
    const { GraphQLNonNull, GraphQLID } = build.graphql;
    operations.push({
      fieldName: `delete${typeName}`,
      inputTypeName: `Delete${typeName}Input`,
      description: `Deletes a record: ${subject}. Refused with CONFLICT while others depend on it.`,
      deprecationReason: undefined,
      members: () => [
        {
          name: "id",
          column: "id",
          codec: TYPES.text,
          type: new GraphQLNonNull(GraphQLID),
          description: "The record to delete.",
        },
      ],
      outputType: () => build.getOutputTypeByName(`Delete${typeName}Payload`),
      plan: ($input) =>
        object({
          record: recordStatement(resource, "delete_record", {
            step: get($input as any, "id") as ExecutableStep,
            pgCodec: TYPES.text,
          }),
        }),
    });
  }
  return operations;
}

function registerDeletePayload(build: GraphileBuild.Build, resource: AnyResource): void {
  const typeName = build.inflection.tableType(resource.codec);
  build.registerObjectType(
    `Delete${typeName}Payload`,
    {},
    () => {
      const { GraphQLNonNull, GraphQLID, GraphQLBoolean } = build.graphql;
      return {
        description: `What delete${typeName} did.`,
        fields: () => {
          const fields: Record<string, any> = {
            id: {
              description: "The deleted record.",
              type: new GraphQLNonNull(GraphQLID),
              plan: ($payload: any) => $payload.get("record").get("id"),
            },
            deleted: {
              description: "Whether it is deleted.",
              type: new GraphQLNonNull(GraphQLBoolean),
              plan: () => constant(true),
            },
          };
          for (const [relationName, relation] of Object.entries(resource.getRelations()) as [string, any][]) {
            if (relation.isReferencee || relation.extensions?.tags?.parent === undefined) continue;
            const fieldName = build.inflection.singleRelation({
              registry: resource.registry,
              codec: resource.codec,
              relationName,
            } as any);
            fields[fieldName] = {
              description: "The record that it belonged to.",
              type: build.getGraphQLTypeByPgCodec(relation.remoteResource.codec, "output"),
              plan: ($payload: any) => {
                const $record = $payload.get("record");
                return relation.remoteResource.get(
                  Object.fromEntries(
                    relation.remoteAttributes.map((remote: string, i: number) => [
                      remote,
                      $record.get(relation.localAttributes[i]),
                    ]),
                  ),
                );
              },
            };
          }
          return fields;
        },
      };
    },
    `OperationsPlugin: delete${typeName}`,
  );
}

function functionOperation(build: GraphileBuild.Build, resource: AnyResource): Operation {
  const { GraphQLNonNull } = build.graphql;
  const functionName = resource.extensions?.pg?.name ?? resource.name;
  const fieldName = camel(functionName);
  const tags = resource.extensions?.tags as Record<string, unknown> | undefined;
  const argumentDescriptions = new Map(
    tagTexts(tags, "arg").map((text) => [text.split(/\s/, 1)[0]!, text.replace(/^\S+\s*/, "")]),
  );
  const parameters = (resource.parameters ?? []) as PgResourceParameter[];
  const spreads = parameters[0]?.name === "input" && baseCodec(parameters[0].codec) === TYPES.jsonb;
  const own = parameters.slice(spreads ? 1 : 0);
  let members: Member[] | undefined;
  const getMembers = () =>
    (members ??= [
      ...(spreads
        ? columnMembers(build, resource.codec, fieldName.startsWith("create") ? "insert" : "update")
        : []),
      ...own.map((parameter): Member => {
        const name = camel(parameter.name!);
        const type = inputTypeOf(build, parameter.codec);
        return {
          name,
          column: parameter.name!,
          codec: parameter.codec,
          type: !(parameter as any).optional ? new GraphQLNonNull(type) : type,
          description:
            argumentDescriptions.get(name) ?? (name === "id" ? describeId : idDescription(parameter.name!)),
        };
      }),
    ]);
  const transforms = build.options.argumentTransforms ?? {};
  const isSlugArgument = (parameter: PgResourceParameter) => baseCodec(parameter.codec) === TYPES.uuid;
  const sqlParameters = parameters.map((parameter) =>
    isSlugArgument(parameter) || isCheckedArgument(parameter.codec)
      ? { ...parameter, codec: TYPES.text }
      : parameter,
  );
  const tableOfResult = resource.codec.extensions?.pg?.name as string | undefined;
  const from = (...digests: { placeholder: SQL; name?: string; position?: number }[]) => {
    const list = digests.map((digest, index) => {
      const parameter =
        digest.name !== undefined ? parameters.find((p) => p.name === digest.name)! : parameters[index]!;
      let value = digest.placeholder;
      if (isSlugArgument(parameter)) {
        const name = parameter.name!;
        const table = name === "id" ? (tableOfResult ?? "") : (SLUG_TABLES[name.replace(/_id$/, "")] ?? "");
        value = sql`app_hidden.record_id(${sql.literal(table)}, ${value}, ${sql.literal(camel(name))})`;
      } else if (isCheckedArgument(parameter.codec)) {
        const type = parameter.codec.sqlType;
        value = sql`app_hidden.checked(${value}, ${sql.literal(sql.compile(type).text)}::regtype, ${sql.literal(camel(parameter.name!))})::${type}`;
      }
      return sql`${sql.identifier(parameter.name!)} => ${value}`;
    });
    return sql`${sql.identifier(resource.extensions!.pg!.schemaName!, functionName)}(${sql.join(list, ", ")})`;
  };
  return {
    fieldName,
    inputTypeName: `${fieldName[0]!.toUpperCase()}${fieldName.slice(1)}Input`,
    description: resource.description ?? fieldName,
    deprecationReason: typeof tags?.deprecated === "string" ? tags.deprecated : undefined,
    members: getMembers,
    outputType: () => build.getGraphQLTypeByPgCodec(resource.codec, "output"),
    plan($input) {
      const $values = lambda([$input, contextStepOf()], ([input, context]) =>
        argumentValues(input as Record<string, unknown>, context as Grafast.Context, {
          spreads,
          members: getMembers(),
          own,
          fieldName,
          transforms,
        }),
      );
      const $select = pgSelect({
        resource,
        identifiers: [],
        parameters: sqlParameters as any,
        args: parameters.map((parameter) => ({
          name: parameter.name,
          step: get($values as any, parameter.name!),
          pgCodec:
            isSlugArgument(parameter) || isCheckedArgument(parameter.codec) ? TYPES.text : parameter.codec,
        })) as any,
        from: from as any,
        mode: "mutation",
        joinAsLateral: true,
      });
      return $select.single() as unknown as ExecutableStep;
    },
  };
}

/** A scalar domain over text: checked on its own, so that a refusal names the argument. */
function isCheckedArgument(codec: PgCodec): boolean {
  const tags = codec.extensions?.tags;
  return Boolean(codec.domainOfCodec) && baseCodec(codec) === TYPES.text && !tags?.enum && !tags?.transform;
}

function idDescription(name: string): string {
  return name.endsWith("_id")
    ? `The ${name.slice(0, -3).replaceAll("_", " ")}.`
    : `The ${name.replaceAll("_", " ")}.`;
}

async function argumentValues(
  input: Record<string, unknown>,
  context: Grafast.Context,
  operation: {
    spreads: boolean;
    members: Member[];
    own: PgResourceParameter[];
    fieldName: string;
    transforms: Record<string, ArgumentTransform>;
  },
): Promise<Record<string, unknown>> {
  const values: Record<string, unknown> = {};
  if (operation.spreads) values.input = toColumns(operation.members, input);
  for (const parameter of operation.own) {
    const member = camel(parameter.name!);
    let value = input[member];
    if (value === undefined) continue;
    const transform = transformOf(parameter.codec);
    if (transform && typeof value === "string") {
      const implementation = operation.transforms[transform];
      if (!implementation) throw new Error(`No implementation of @transform ${transform}`);
      value = await implementation(value, { member, operation: operation.fieldName, input, context });
    } else if (typeof value === "string") {
      value = value.trim() === "" ? null : value.trim();
    }
    values[parameter.name!] = toDatabaseNames(parameter.codec, value, member);
  }
  return values;
}

function transformOf(codec: PgCodec): string | undefined {
  const tag = codec.extensions?.tags?.transform;
  return typeof tag === "string" ? tag : codec.domainOfCodec ? transformOf(codec.domainOfCodec) : undefined;
}
