/** Finds in the schema which variables of an operation are files, of which kind and for which purpose. */
import {
  getNamedType,
  isInputObjectType,
  Kind,
  parse,
  valueFromASTUntyped,
  type DocumentNode,
  type GraphQLSchema,
  type ObjectValueNode,
  type SelectionSetNode,
  type VariableNode,
} from "postgraphile/graphql";
import { isFileKind, type FileKindName } from "../providers/files/kinds.ts";
import { queryLimits } from "../admission/queryLimits.ts";
import type { GraphQLRequest } from "./graphqlRequest.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

function* rootFields(
  document: DocumentNode,
  set: SelectionSetNode,
  seen = new Set<string>(),
): Generator<DatabaseValue> {
  for (const selection of set.selections) {
    if (selection.kind === Kind.FIELD) yield selection;
    else if (selection.kind === Kind.INLINE_FRAGMENT)
      yield* rootFields(document, selection.selectionSet, seen);
    else if (!seen.has(selection.name.value)) {
      seen.add(selection.name.value);
      for (const definition of document.definitions)
        if (definition.kind === Kind.FRAGMENT_DEFINITION && definition.name.value === selection.name.value)
          yield* rootFields(document, definition.selectionSet, seen);
    }
  }
}

/** Destination of a file. */
export interface UploadPlace {
  kind: FileKindName;
  /** A table of files, or the operation of an import. */
  target: string;
  /** Input of the operation, with null for the file. */
  input: Record<string, unknown>;
}

/** By path, such as `variables.input.file`. Empty for a document with a syntax error, which GraphQL then refuses. */
export function uploadPlaces(schema: GraphQLSchema, request: GraphQLRequest): Map<string, UploadPlace> {
  const found = new Map<string, UploadPlace>();
  let document: DocumentNode;
  try {
    document = parse(request.query, { noLocation: true, maxTokens: queryLimits.tokens });
  } catch {
    return found;
  }
  const mutations = schema.getMutationType()?.getFields() ?? {};
  for (const operation of document.definitions) {
    if (operation.kind !== Kind.OPERATION_DEFINITION || operation.operation !== "mutation") continue;
    if (request.operationName != null && operation.name?.value !== request.operationName) continue;
    for (const field of rootFields(document, operation.selectionSet)) {
      const argument = mutations[field.name.value]?.args.find(({ name }) => name === "input");
      const value = field.arguments?.find((given: DatabaseValue) => given.name.value === "input")?.value as
        VariableNode | ObjectValueNode | undefined;
      const type = argument && getNamedType(argument.type);
      if (!value || !isInputObjectType(type)) continue;
      for (const member of Object.values(type.getFields())) {
        const { upload: kind, uploadTarget: target } = member.extensions;
        if (!isFileKind(kind) || typeof target !== "string") continue;
        const input = (valueFromASTUntyped(value, request.variables) ?? {}) as UploadPlace["input"];
        const place = { kind, target, input };
        if (value.kind === Kind.VARIABLE) found.set(`variables.${value.name.value}.${member.name}`, place);
        if (value.kind !== Kind.OBJECT) continue;
        const given = value.fields.find(({ name }) => name.value === member.name)?.value;
        if (given?.kind === Kind.VARIABLE) found.set(`variables.${given.name.value}`, place);
      }
    }
  }
  return found;
}
