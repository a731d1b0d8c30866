import { initGraphQLTada } from "gql.tada";
import type { introspection } from "./graphql-env.d.ts";

/**
 * Types of documents, derived from the schema: `npm run prepare` writes graphql-env.d.ts. Amounts of money
 * are strings, because numbers could lose cents.
 */
export const graphql = initGraphQLTada<{
  introspection: introspection;
  disableMasking: true;
  scalars: { Cursor: string; CurrencyCode: string; DateTime: string; Decimal: string; URL: string };
}>();
