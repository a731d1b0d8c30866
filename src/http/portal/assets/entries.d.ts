/** Types of `entries.js` for the service; browsers load that file directly. */
import type {
  GraphQLField,
  GraphQLInputField,
  GraphQLNamedType,
  GraphQLOutputType,
} from "postgraphile/graphql";
import type { Facts } from "../facts.ts";

export const domainNames: readonly string[];
export function domainOf(name: string): string;
export function codesOf(
  operation: { kind: string; name: string; about: GraphQLField<unknown, unknown> },
  inputFields: readonly GraphQLInputField[] | undefined,
  facts: Facts,
): string[];
export function stateNameOf(
  about: { type: GraphQLOutputType } | GraphQLNamedType,
  states: Facts["states"],
): string | undefined;

export function valueAt(data: unknown, path: string): unknown;
export function filledVariables(
  example: { variables?: unknown; needs?: { variables: Readonly<Record<string, string>> } | undefined },
  found: unknown,
): Record<string, unknown>;
