/**
 * Answers introspection queries a few types at a time. Answered at once, they would block the event loop for 100 ms or
 * more.
 */
import { performance } from "node:perf_hooks";
import {
  __Schema,
  __Type,
  type DocumentNode,
  execute,
  type ExecutionArgs,
  type ExecutionResult,
  getOperationAST,
  type GraphQLFieldResolver,
  type GraphQLObjectType,
  Kind,
  type SelectionSetNode,
} from "postgraphile/graphql";
import { eventLoop } from "../admission/eventLoop.ts";
import type { Party } from "../admission/party.ts";

/** Milliseconds of the event loop per slice. */
const SLICE_MS = 8;
/** Lists up to this length are processed without yielding: most types have fewer fields. */
const SHORT = 32;

/** The context of an execution that yields to others. */
class Pieces {
  readonly #party: Party;
  #until = 0;

  constructor(party: Party) {
    this.#party = party;
  }

  /** Yields the items, each as soon as there is time for it. */
  of(items: readonly unknown[]): readonly unknown[] {
    const waiting = items.map((item) => ({ item, ...Promise.withResolvers<unknown>() }));
    const handOut = async (): Promise<void> => {
      for (const { item, resolve } of waiting) {
        if (performance.now() > this.#until) {
          await eventLoop.ready(this.#party);
          this.#until = performance.now() + SLICE_MS;
        }
        resolve(item);
        // The item is completed before the next one is taken.
        await undefined;
      }
    };
    handOut().catch((error: unknown) => {
      for (const { reject } of waiting) reject(error);
    });
    return waiting.map(({ promise }) => promise);
  }
}

/** graphql-js awaits items that are promises; only in these executions do long lists of the schema contain them. */
function giveInPieces(type: GraphQLObjectType, name: string): void {
  const field = type.getFields()[name]!;
  const whole = field.resolve!;
  const resolve: GraphQLFieldResolver<unknown, unknown> = (source, args, context, info) => {
    const items = whole(source, args, context, info) as readonly unknown[] | null;
    return context instanceof Pieces && items && items.length > SHORT ? context.of(items) : items;
  };
  field.resolve = resolve;
}
giveInPieces(__Schema, "types");
giveInPieces(__Type, "fields");

/** Names of the root fields of a selection. */
function rootNames(
  document: DocumentNode,
  { selections }: SelectionSetNode,
  seen = new Set<string>(),
): string[] {
  return selections.flatMap((selection) => {
    if (selection.kind === Kind.FIELD) return [selection.name.value];
    if (selection.kind === Kind.INLINE_FRAGMENT) return rootNames(document, selection.selectionSet, seen);
    if (seen.has(selection.name.value)) return [];
    seen.add(selection.name.value);
    return document.definitions.flatMap((definition) =>
      definition.kind === Kind.FRAGMENT_DEFINITION && definition.name.value === selection.name.value
        ? rootNames(document, definition.selectionSet, seen)
        : [],
    );
  });
}

/** Whether a valid operation queries the schema, and whether it also queries data. */
export function asksForSchema(
  document: DocumentNode,
  operationName: string | null | undefined,
): "no" | "alone" | "with data" {
  const operation = getOperationAST(document, operationName);
  const names = operation ? rootNames(document, operation.selectionSet) : [];
  if (!names.some((name) => name === "__schema" || name === "__type")) return "no";
  return names.every((name) => name.startsWith("__")) ? "alone" : "with data";
}

/** The answer to an operation that only queries the schema. */
export async function introspect(
  { schema, document, operationName, variableValues }: ExecutionArgs,
  party: Party,
): Promise<ExecutionResult> {
  return execute({
    schema,
    document,
    operationName: operationName ?? null,
    variableValues: variableValues ?? {},
    contextValue: new Pieces(party),
  });
}
