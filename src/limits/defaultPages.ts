/** Reports lists that were cut at their default size because the request did not specify one. */
import {
  type DocumentNode,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  getOperationAST,
  isLeafType,
  isListType,
  Kind,
  type SelectionSetNode,
} from "postgraphile/graphql";
import { type SelectedField, SelectedFields } from "./selectedFields.ts";

/** A list of an operation whose `first` is omitted in the document or left to a variable. */
export interface DefaultPage {
  /** The response names that lead to it, without the lists on the way. */
  readonly keys: readonly string[];
  /** The maximum number of records in that case. */
  readonly first: number;
  /** The variable that may specify the number. */
  readonly variable?: string;
}

/** A list of an answer with as many records as it can have without `first`. */
export interface FullPage {
  path: (string | number)[];
  first: number;
}

function pageOf({ node, definition }: SelectedField, keys: readonly string[]): DefaultPage | undefined {
  const argument = definition.args.find(({ name }) => name === "first");
  if (!argument || !isListType(getNullableType(definition.type))) return undefined;
  const given = node.arguments?.find(({ name }) => name.value === "first")?.value;
  if (given && given.kind !== Kind.VARIABLE && given.kind !== Kind.NULL) return undefined;
  const first = Number(argument.defaultValue ?? argument.extensions.size);
  if (!first) return undefined;
  return given?.kind === Kind.VARIABLE ? { keys, first, variable: given.name.value } : { keys, first };
}

/** By document, then by operation. */
const known = new WeakMap<DocumentNode, Map<string, DefaultPage[]>>();

/** The lists of an operation that may be cut at their default size; connections report themselves whether there is more. */
export function defaultPages(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | null | undefined,
): DefaultPage[] {
  const ofDocument = known.get(document) ?? new Map<string, DefaultPage[]>();
  known.set(document, ofDocument);
  const name = operationName ?? "";
  const pages = ofDocument.get(name) ?? findPages(schema, document, operationName);
  ofDocument.set(name, pages);
  return pages;
}

function findPages(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | null | undefined,
): DefaultPage[] {
  const operation = getOperationAST(document, operationName);
  const root = operation && schema.getRootType(operation.operation);
  if (!operation || !root) return [];
  const fields = new SelectedFields(schema, document);
  const withDefault = new Set(
    operation.variableDefinitions?.flatMap(({ variable, defaultValue }) =>
      defaultValue && defaultValue.kind !== Kind.NULL ? [variable.name.value] : [],
    ),
  );
  const found: DefaultPage[] = [];
  const visit = (
    type: GraphQLNamedType,
    selections: readonly SelectionSetNode[],
    keys: readonly string[],
  ): void => {
    for (const field of fields.of(type, selections)) {
      const named = getNamedType(field.definition.type);
      if (isLeafType(named)) continue;
      const inside = [...keys, (field.node.alias ?? field.node.name).value];
      const page = pageOf(field, inside);
      if (page && !withDefault.has(page.variable ?? "")) found.push(page);
      visit(named, field.selections, inside);
    }
  };
  visit(root, [operation.selectionSet], []);
  return found;
}

/** More lists are not listed: the message is clear by then. */
const MOST_NAMED = 20;

/** The lists without `first` that are full in the answer, so that there may be more records. */
export function fullPages(
  data: unknown,
  pages: readonly DefaultPage[],
  variables: Readonly<Record<string, unknown>>,
): FullPage[] {
  const found: FullPage[] = [];
  for (const { keys, first, variable } of pages) {
    if (variable !== undefined && variables[variable] != null) continue;
    const visit = (value: unknown, path: (string | number)[], depth: number): void => {
      if (found.length === MOST_NAMED || value === null || typeof value !== "object") return;
      if (depth === keys.length) {
        if (Array.isArray(value) && value.length === first) found.push({ path, first });
        return;
      }
      if (Array.isArray(value)) {
        for (const [index, item] of value.entries()) visit(item, [...path, index], depth);
        return;
      }
      const key = keys[depth]!;
      visit((value as Record<string, unknown>)[key], [...path, key], depth + 1);
    };
    visit(data, [], 0);
  }
  return found;
}
