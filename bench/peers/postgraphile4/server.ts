import { createServer } from "node:https";
import { postgraphile } from "postgraphile";
import { claimSettings, listen, readToken, settings } from "../serve.ts";

const handler = postgraphile(
  { connectionString: settings.databaseUrl, max: settings.poolSize, options: "-c jit=off" },
  "peers",
  {
    graphqlRoute: "/graphql",
    graphiql: false,
    dynamicJson: true,
    disableQueryLog: true,
    ignoreRBAC: true,
    pgSettings: async (request: { headers: { authorization?: string } }) =>
      claimSettings(readToken(request.headers.authorization)),
  } as object,
);
await listen(createServer(settings.tls, handler));
