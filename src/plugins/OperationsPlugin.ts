/**
 * Mutations: one field per operation, exactly one argument `input`, returning the record itself.
 *
 * They are derived from grants and functions, so that a mutation needs no TypeScript:
 * - a table with INSERT, UPDATE or DELETE granted gets createX, updateX, deleteX, executed by
 *   app_hidden.create_record, update_record and delete_record as the viewer;
 * - a volatile function is the mutation of its name, its arguments are the fields of `input`; if the first argument
 *   is `input jsonb`, the granted columns of the table that it returns are fields too;
 * - a function named like a generated mutation replaces it.
 *
 * Each accepts an idempotency key, except functions tagged `@eachTime`.
 */
import type { PgCodec } from "postgraphile/@dataplan/pg";
import { constant } from "postgraphile/grafast";
import type { GraphQLInputFieldConfig } from "postgraphile/graphql";
import { deletedFields, operationNameOf, registerDeletePayload } from "../operations/deletePayload.ts";
import { functionOperation } from "../operations/functionOperation.ts";
import { transformOf } from "../operations/inputFields.ts";
import type { Operation } from "../operations/operation.ts";
import { dryRunField, dryRunKind, noDryRun } from "../operations/dryRun.ts";
import { idempotencyField, idempotencyOf } from "../operations/idempotency.ts";
import { tableOperations } from "../operations/tableOperations.ts";
import { camel } from "../schema/codecNames.ts";
import { recordTables, type AnyResource } from "../schema/recordTables.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      OperationsPlugin: true;
    }
  }
  namespace GraphileBuild {
    interface BehaviorStrings {
      operation: true;
    }
  }
}

/** First sentence of a description, with the second if the first is short. */
function summary(description: string | null | undefined): string {
  const [first = "", second = ""] = (description ?? "").match(/[\s\S]*?\.(?=\s|$)/g) ?? [];
  return first.split(" ").length > 6 ? first : first + second;
}

export const OperationsPlugin: GraphileConfig.Plugin = {
  name: "OperationsPlugin",
  version: "1.0.0",
  after: ["PgAttributesPlugin", "PgCustomTypeFieldPlugin", "PgRBACPlugin"],
  schema: {
    behaviorRegistry: {
      add: {
        operation: {
          description: "is a mutation function an operation? do the grants on a table make some?",
          entities: ["pgResource"],
        },
      },
    },
    entityBehavior: {
      pgResource: {
        inferred(behavior, resource) {
          return resource.isMutation || !resource.parameters ? [behavior, "operation"] : behavior;
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
                description: `Input of \`${operation.fieldName}\`. ${summary(operation.description)}`.trim(),
                fields: () => inputFields(build, operation),
              }),
              `OperationsPlugin: ${operation.fieldName}`,
            );
          }
          for (const resource of deletableTables(build)) registerDeletePayload(build, resource);
          return _;
        },
      },
      GraphQLObjectType_fields(fields, build, context) {
        const deleted = /^Delete(\w+)Payload$/.exec(context.Self.name)?.[1];
        // For a function that returns more than the generated mutation.
        if (deleted && fields.id && fields.deleted && !fields.deletedId)
          return build.extend(
            fields,
            deletedFields(build, deleted, ($payload) => $payload.get("id")),
            "OperationsPlugin",
          );
        if (!context.scope.isRootMutation) return fields;
        const { GraphQLNonNull } = build.graphql;
        // PERF: all at once, since each extension copies the existing fields.
        const ofOperations = operationsOf(build).map((operation) => [
          operation.fieldName,
          context.fieldWithHooks({ fieldName: operation.fieldName }, () => ({
            type: operation.outputType(),
            description: operation.description,
            ...(operation.deprecationReason ? { deprecationReason: operation.deprecationReason } : {}),
            args: {
              input: {
                description: operation.eachTime
                  ? "Fields of the mutation."
                  : "Fields of the mutation. With `idempotencyKey`, a retry has no second effect.",
                type: new GraphQLNonNull(build.getInputTypeByName(operation.inputTypeName)),
              },
            },
            plan: (_$root: unknown, fieldArgs) => {
              const $input = fieldArgs.getRaw("input");
              return operation.plan(
                $input,
                operation.eachTime ? constant(undefined) : idempotencyOf($input, operation.becomes),
              );
            },
          })),
        ]);
        return build.extend(fields, Object.fromEntries(ofOperations), "OperationsPlugin");
      },
    },
  },
};

const cache = new WeakMap<object, Operation[]>();

function operationsOf(build: GraphileBuild.Build): Operation[] {
  const known = cache.get(build.input);
  if (known) return known;
  const operations = new Map<string, Operation>();
  for (const resource of writableTables(build)) {
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

/** Tables whose grants create mutations: all without `@behavior -operation`. */
function writableTables(build: GraphileBuild.Build): AnyResource[] {
  return recordTables(build).filter((resource) => build.behavior.pgResourceMatches(resource, "operation"));
}

function deletableTables(build: GraphileBuild.Build): AnyResource[] {
  const replaced = new Set(
    (Object.values(build.pgResources) as AnyResource[])
      .filter((r) => r.isMutation)
      .map((r) => camel(r.extensions?.pg?.name ?? "")),
  );
  return writableTables(build).filter(
    (r) => r.extensions?.canDelete && !replaced.has(`delete${operationNameOf(build, r)}`),
  );
}

/** The tag @transform of a domain that is the scalar Upload. */
function uploadKind(codec: PgCodec): string | undefined {
  return codec.extensions?.tags?.scalar === "Upload" ? transformOf(codec) : undefined;
}

function inputFields(
  build: GraphileBuild.Build,
  operation: Operation,
): Record<string, GraphQLInputFieldConfig> {
  const fields: Record<string, GraphQLInputFieldConfig> = {};
  for (const { name, type, description, codec } of operation.members())
    // Kind and purpose of a file, for reading it before the mutation is executed.
    fields[name] = {
      type,
      description,
      extensions: { upload: uploadKind(codec), uploadTarget: operation.uploadTarget },
    };
  const dryRun = dryRunKind(operation.transforms(), dryRunField.name in fields);
  fields[dryRunField.name] = {
    type: build.graphql.GraphQLBoolean,
    description: dryRun === "NONE" ? noDryRun : dryRunField.description,
    ...fields[dryRunField.name],
    extensions: { dryRun },
  };
  if (!operation.eachTime)
    fields[idempotencyField.name] ??= {
      type: build.graphql.GraphQLString,
      description: idempotencyField.description,
    };
  return fields;
}
