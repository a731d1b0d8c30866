import { initGraphQLTada } from "gql.tada";
import type { introspection } from "./graphql-env.d.ts";

/** Types of documents, from the schema: `npm run prepare` writes graphql-env.d.ts. Money is a string, so that no cent is lost. */
export const graphql = initGraphQLTada<{
  introspection: introspection;
  disableMasking: true;
  scalars: { Cursor: string; CurrencyCode: string; DateTime: string; Decimal: string; URL: string };
}>();
