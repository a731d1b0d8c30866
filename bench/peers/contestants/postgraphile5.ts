import { createServer } from "node:https";
import { PgAggregatesPreset } from "@graphile/pg-aggregates";
import { postgraphile } from "postgraphile";
import { makePgService } from "postgraphile/adaptors/pg";
import { grafserv } from "postgraphile/grafserv/node";
import { PostGraphileAmberPreset } from "postgraphile/presets/amber";
import { claimSettings, listen, readToken, settings } from "../serve.ts";

const instance = postgraphile({
  extends: [PostGraphileAmberPreset, PgAggregatesPreset],
  // Other schemas, which it may not read, would fill the log with errors.
  disablePlugins: ["PgEnumTablesPlugin"],
  pgServices: [
    makePgService({
      connectionString: settings.databaseUrl,
      schemas: ["peers"],
      poolConfig: { max: settings.poolSize },
    }),
  ],
  grafserv: { graphqlPath: "/graphql", graphiql: false },
  grafast: {
    explain: false,
    context: (request) => ({
      pgSettings: claimSettings(readToken(request.node?.req.headers.authorization)),
    }),
  },
});
const server = createServer(settings.tls);
await instance.createServ(grafserv).addTo(server as any);
await listen(server);
