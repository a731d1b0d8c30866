/** The schema of a service, by introspection. */
import type { GraphQLSchema, IntrospectionQuery } from "graphql";
import { type Context, UsageError } from "./command.ts";
import { operation } from "./queries.ts";

type Graphql = typeof import("graphql");

/** @throws UsageError if the optional package graphql is not installed */
export async function loadGraphql(): Promise<Graphql> {
  try {
    return await import("graphql");
  } catch {
    throw new UsageError("This needs the package graphql: npm install graphql.");
  }
}

export async function servedSchema(context: Context): Promise<{ graphql: Graphql; schema: GraphQLSchema }> {
  const graphql = await loadGraphql();
  const client = await context.connect({ anonymous: !context.profile.token });
  const introspection = await client.request(
    operation<IntrospectionQuery>(graphql.getIntrospectionQuery({ inputValueDeprecation: true })),
  );
  return { graphql, schema: graphql.buildClientSchema(introspection) };
}
