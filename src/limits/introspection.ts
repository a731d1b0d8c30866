/** Answers to questions about the schema, made a few types at a time: in one piece, they hold the event loop for 100 ms and more. */
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

/** Milliseconds of the event loop at a time. */
const SLICE_MS = 8;
/** Lists up to so many items are not looked at one by one: most types have fewer fields. */
const SHORT = 32;

/** The context of an execution that lets others in between. */
class Pieces {
  readonly #party: Party;
  #until = 0;

  constructor(party: Party) {
    this.#party = party;
  }

  /** The items, each as soon as there is time for it. */
  of(items: readonly unknown[]): readonly unknown[] {
    const waiting = items.map((item) => ({ item, ...Promise.withResolvers<unknown>() }));
    const handOut = async (): Promise<void> => {
      for (const { item, resolve } of waiting) {
        if (performance.now() > this.#until) {
          await eventLoop.ready(this.#party);
          this.#until = performance.now() + SLICE_MS;
        }
        resolve(item);
        // What it becomes is made before the next one is looked at.
        await undefined;
      }
    };
    handOut().catch((error: unknown) => {
      for (const { reject } of waiting) reject(error);
    });
    return waiting.map(({ promise }) => promise);
  }
}

/** graphql-js waits for items that are promises; those of long lists of the schema are such in our executions, and in no others. */
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

/** Names of the fields that a selection has at its root. */
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

/** Whether a valid operation asks for the schema, and for nothing else or for data too. */
export function asksForSchema(
  document: DocumentNode,
  operationName: string | null | undefined,
): "no" | "alone" | "with data" {
  const operation = getOperationAST(document, operationName);
  const names = operation ? rootNames(document, operation.selectionSet) : [];
  if (!names.some((name) => name === "__schema" || name === "__type")) return "no";
  return names.every((name) => name.startsWith("__")) ? "alone" : "with data";
}

/** The answer to an operation that asks for the schema alone. */
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
