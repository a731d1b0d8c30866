import { readToken } from "../serve.ts";
import { serveApollo } from "./apolloServer.ts";
import { contextOf, resolvers, typeDefs } from "./schema.ts";

await serveApollo({ typeDefs, resolvers }, (authorization) => contextOf(readToken(authorization)));
