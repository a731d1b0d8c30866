/**
 * Nullability of outputs: elements of array columns are never null, those of group keys may be, and @notNull on a
 * function makes its field non-null. Descriptions shared by every table are defined here; those of related records
 * say when they are null.
 */
import type { GraphQLOutputType } from "postgraphile/graphql";
import type { AnyScope, AnyType } from "../schema/stackTypes.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      OutputShapesPlugin: true;
    }
  }
}

/** Columns that every record has. */
const shared: Record<string, string> = {
  id: "UUID; ids in ascending order are in order of creation.",
  insertedAt: "When it was created.",
  updatedAt: "When it was last changed.",
  version:
    "Incremented by every change. Send it back as `expectedVersion` to have an update refused if somebody else changed the record meanwhile.",
  deletedAt:
    "When it was deleted; null otherwise. Lists contain deleted records only with the filter `includeDeleted`.",
  organizationId: "Id of the organization (the tenant) that the record belongs to.",
  projectId: "Id of the project that the record belongs to.",
  userId: "Id of the user account.",
  nodes: "The records of this page.",
  edges: "The records of this page, each with its cursor.",
  cursor: "Position of the record in the list, for the arguments `after` and `before`; opaque.",
  node: "The record at this position of the list.",
  pageInfo: "Cursors of the first and last record of this page, and whether there are further pages.",
  totalCount: "Number of matching records on all pages.",
  aggregates: "Sums, averages, extremes and counts over all matching records, not only those of this page.",
  groupedAggregates: "The same aggregates for each group.",
  keys: "The values that the records of this group have in common, in the order of `groupBy`.",
};

export const OutputShapesPlugin: GraphileConfig.Plugin = {
  name: "OutputShapesPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      GraphQLObjectType: {
        after: ["PgConnections"],
        callback: (config) => ({
          ...config,
          description: pageTypeDescription(config.description ?? "") ?? config.description,
        }),
      },
      GraphQLObjectType_fields_field: {
        after: ["PgAttributes"],
        callback(field, build, context) {
          const { GraphQLList, GraphQLNonNull, isListType, isNonNullType } = build.graphql;
          let type = field.type as GraphQLOutputType;
          const required = isNonNullType(type);
          const inner = required ? (type as AnyType).ofType : type;
          // A group key may be null, such as the assignee of unassigned leads.
          const { isNodeField } = context.scope as { isNodeField?: boolean };
          const mayHoldNull = context.scope.fieldName === "keys" || isNodeField;
          if (isListType(inner) && !isNonNullType(inner.ofType) && !mayHoldNull) {
            const list = new GraphQLList(new GraphQLNonNull(inner.ofType as AnyType));
            type = required ? new GraphQLNonNull(list) : list;
          }
          // Viewers of the record can see the referenced one: the rule relation-not-null holds the tag against the policies.
          if (!isNonNullType(type) && relationOf(context.scope)?.extensions?.tags?.notNull !== undefined)
            type = new GraphQLNonNull(type as AnyType);
          const { fieldName } = context.scope;
          let description = field.description;
          if (!description || ofStack.test(description)) {
            description =
              shared[fieldName] ??
              connectionDescription(description ?? "") ??
              description ??
              (fieldName.endsWith("Id") ? `Id of the ${words(fieldName.slice(0, -2))}.` : undefined);
          }
          return {
            ...field,
            type,
            description: describeRecord(context.scope, isNonNullType(type), description),
          };
        },
      },
      GraphQLInputObjectType_fields_field(field, build, context) {
        const { fieldName, pgCodec } = context.scope;
        // Fields that a composite type always has on output may be omitted on input.
        const optional =
          pgCodec && !pgCodec.extensions?.isTableLike && build.graphql.isNonNullType(field.type);
        return {
          ...field,
          ...(optional ? { type: (field.type as AnyType).ofType } : {}),
          description: field.description ?? shared[fieldName] ?? `The ${words(fieldName)}.`,
        };
      },
    },
  },
};

/** The relation of a field for a referenced record. */
function relationOf(scope: GraphileBuild.ScopeObjectFieldsField): AnyType | undefined {
  const { pgRelationDetails: details } = scope as AnyScope;
  const relation = details?.registry.pgRelations[details.codec.name]?.[details.relationName];
  return relation?.isReferencee ? undefined : relation;
}

/** Scopes that an access token requires for the records to which most others belong. */
const scopes: Record<string, string> = { organizations: "org.member", projects: "project.read" };

/** Description of a field for a referenced record, with the meaning of null. */
function describeRecord(
  fieldScope: GraphileBuild.ScopeObjectFieldsField,
  isNonNull: boolean,
  description = "",
): string {
  const { pgRelationDetails: details, fieldName } = fieldScope as AnyScope;
  const relation = relationOf(fieldScope);
  if (!relation) return description;
  // A relation without a description uses that of its column.
  const text = /^Reads a single/.test(description)
    ? `The ${words(fieldName)}.`
    : description.replace(/^Id of (?:the|an?) /, "The ");
  if (isNonNull || /\bnull\b/i.test(text)) return text;
  const hasOne = relation.localAttributes.every(
    (name: string) =>
      details.codec.attributes[name].notNull || details.codec.attributes[name].extensions?.tags?.notNull,
  );
  const scope = scopes[relation.remoteResource.codec.name];
  const hidden = `the viewer may not see it${scope ? `, such as an access token without \`${scope}\`` : ""}`;
  const when = hasOne ? `null if ${hidden}` : `null if there is none or ${hidden}`;
  return /^[^.]*\.$/.test(text)
    ? `${text.slice(0, -1)}; ${when}.`
    : `${text} ${when[0]!.toUpperCase()}${when.slice(1)}.`;
}

/** Descriptions that PostGraphile generates. */
const ofStack =
  /^(Reads (and enables pagination|a set|through)|A cursor for use in pagination|A list of edges which contains|A list of `\w+` objects\.$|The count of \*all\*|Information to aid in pagination)/;

const stockConnection = /^Reads and enables pagination through a set of `(\w+)`\.$/;

/** Replaces PostGraphile's description of connection fields. */
function connectionDescription(stock: string): string | undefined {
  const typeName = stockConnection.exec(stock)?.[1];
  return (
    typeName &&
    `\`${typeName}\` records as a connection: cursor pagination, \`totalCount\` and aggregates over all matching records.`
  );
}

/** Connection types of PostGraphile, by name. */
function pageTypeDescription(stock: string): string | undefined {
  const [, node] = /^A `(\w+)` edge in the connection\.$/.exec(stock) ?? [];
  if (node) return `One \`${node}\` of a page, with its cursor.`;
  const [, listed] = /^A connection to a list of `(\w+)` values/.exec(stock) ?? [];
  return listed && `A page of \`${listed}\` records.`;
}

function words(name: string): string {
  return name.replace(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`).trim();
}
