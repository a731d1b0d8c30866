/**
 * What members are told whom an organization refuses because they have no second factor. SQL answers them as it does people who are no
 * members; so that nobody looks for a fault, what they do not find or may not do is answered with the reason. Of several organizations
 * the others go on: their lists leave out what is refused, and are refused themselves where nothing is left.
 */
import { GraphQLError, Kind, type DocumentNode, type SelectionSetNode } from "postgraphile/graphql";
import { CodedError } from "../base/errors.ts";
import type { Claims } from "./requestState.ts";

/** What has nothing to do with organizations, and may be null or empty. */
const elsewhere = new Set(["viewer", "nearestCity", "publicProjects", "user", "__schema", "__type"]);

const message =
  "An organization of yours requires a second factor, and shows you nothing until you have one: get it by enrollSecondFactor and confirmSecondFactor.";

const details = { reason: "ORGANIZATION_REQUIRES_SECOND_FACTOR" } as const;

/**
 * The error in the place of one by which a viewer was refused, or found nothing. Where other organizations go on, a permission that is
 * lacking may be one of theirs: what was said of it stays.
 */
export function withReason(error: CodedError, claims: Claims | undefined): CodedError {
  const hides = error.code === "NOT_FOUND" || error.code === "FORBIDDEN";
  if (!claims?.secondFactorWithholds || !hides || error.extensions.reason !== undefined) return error;
  const stays = error.code === "FORBIDDEN" && claims.secondFactorWithholds === "SOME";
  const extensions = { ...error.extensions, ...details };
  return new CodedError("FORBIDDEN", stays ? error.message : message, extensions, { cause: error });
}

/**
 * The error for each field of a query that found nothing; its value becomes null.
 * @param refused keys of fields that have an error already
 */
export function withheld(
  data: Record<string, unknown>,
  refused: ReadonlySet<unknown>,
  document: DocumentNode,
  selections: SelectionSetNode,
  claims: Claims | undefined,
): GraphQLError[] {
  const how = claims?.secondFactorWithholds;
  if (!how) return [];
  const errors: GraphQLError[] = [];
  for (const [key, name] of rootFields(document, selections)) {
    const isEmpty = data[key] === null || (how === "ALL" && hasNothing(data[key]));
    if (!isEmpty || elsewhere.has(name) || refused.has(key)) continue;
    data[key] = null;
    errors.push(new GraphQLError(message, { path: [key], extensions: { ...details, code: "FORBIDDEN" } }));
  }
  return errors;
}

/** An empty list, or a connection of nothing. */
function hasNothing(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  const { nodes, edges, totalCount } = (value ?? {}) as Record<string, unknown>;
  return [nodes, edges].some((list) => Array.isArray(list) && list.length === 0) || totalCount === 0;
}

/** The fields of an operation by their keys in the answer, through fragments. */
function* rootFields(
  document: DocumentNode,
  { selections }: SelectionSetNode,
  seen = new Set<string>(),
): Generator<[key: string, name: string]> {
  for (const selection of selections) {
    if (selection.kind === Kind.FIELD) {
      yield [selection.alias?.value ?? selection.name.value, selection.name.value];
    } else if (selection.kind === Kind.INLINE_FRAGMENT) {
      yield* rootFields(document, selection.selectionSet, seen);
    } else if (!seen.has(selection.name.value)) {
      seen.add(selection.name.value);
      for (const definition of document.definitions)
        if (definition.kind === Kind.FRAGMENT_DEFINITION && definition.name.value === selection.name.value)
          yield* rootFields(document, definition.selectionSet, seen);
    }
  }
}
