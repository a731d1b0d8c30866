import Fastify from "fastify";
import { GraphQLScalarType } from "graphql";
import mercurius from "mercurius";
import { readToken, ready, settings } from "../serve.ts";
import { contextOf, resolvers, typeDefs } from "./schema.ts";

const app = Fastify({ https: settings.tls, keepAliveTimeout: 65_000 } as object);
await app.register(mercurius, {
  schema: typeDefs,
  resolvers: {
    ...resolvers,
    DateTime: new GraphQLScalarType({ name: "DateTime", ...resolvers.DateTime } as any),
  } as any,
  jit: 1,
  context: (request: { headers: { authorization?: string } }) =>
    contextOf(readToken(request.headers.authorization)) as any,
});
await app.listen({ port: 0, host: "127.0.0.1" });
ready((app.server.address() as { port: number }).port);
