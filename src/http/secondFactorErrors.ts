/**
 * Errors for members without a second factor, in an organization that requires one. SQL treats these members like
 * non-members. To explain this to them, the errors "not found" and "missing permission" are replaced with one that
 * gives the reason. A member of several organizations can still use the others: lists omit the records of the
 * organization that refuses, and are refused only if no other organization remains.
 */
import { GraphQLError, Kind, type DocumentNode, type SelectionSetNode } from "postgraphile/graphql";
import { CodedError } from "../base/errors.ts";
import type { Claims } from "./requestState.ts";

/** Fields unrelated to organizations, which may be null or empty. */
const elsewhere = new Set(["viewer", "nearestCity", "publicProjects", "user", "__schema", "__type"]);

const message =
  "Your organization requires a second factor; set one up with enrollSecondFactor and confirmSecondFactor to see its data.";

const details = { reason: "ORGANIZATION_REQUIRES_SECOND_FACTOR" } as const;

/**
 * Replaces an error by which a viewer was refused or found nothing. If other organizations remain, a missing
 * permission may concern one of them, so that error is kept.
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
 * @param refused keys of fields that already have an error
 */
export function secondFactorErrors(
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

/** An empty list, or an empty connection. */
function hasNothing(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  const { nodes, edges, totalCount } = (value ?? {}) as Record<string, unknown>;
  return [nodes, edges].some((list) => Array.isArray(list) && list.length === 0) || totalCount === 0;
}

/** Fields of an operation by response key, including those in fragments. */
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
