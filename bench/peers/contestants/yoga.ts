import { createServer } from "node:https";
import { createSchema, createYoga } from "graphql-yoga";
import { listen, readToken, settings } from "../serve.ts";
import { contextOf, resolvers, typeDefs } from "./schema.ts";

const yoga = createYoga({
  schema: createSchema({ typeDefs, resolvers: resolvers as any }),
  context: ({ request }) => contextOf(readToken(request.headers.get("authorization") ?? undefined)) as any,
  logging: false,
  graphiql: false,
  maskedErrors: false,
});
await listen(createServer(settings.tls, yoga));
