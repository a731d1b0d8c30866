/**
 * Runs each client against the service given by environment variables, and writes the results as JSON: `npm
 * run test:clients`.
 */
import apollo from "./apollo.ts";
import bundle from "./bundle.ts";
import graphqlRequest from "./graphqlRequest.ts";
import relay from "./relay.ts";
import type { Setting } from "./setting.ts";
import { codegen, gqlTada } from "./typed.ts";
import urql from "./urql.ts";

const setting = JSON.parse(process.env["PLAT_SETTING"]!) as Setting;
const clients: Record<string, (setting: Setting) => Promise<string>> = {
  "Apollo Client, apollo-upload-client": apollo,
  "urql, graphcache": urql,
  "graphql-request": graphqlRequest,
  "Relay compiler and runtime": relay,
  "GraphQL Code Generator, client preset": codegen,
  "gql.tada": gqlTada,
  bundlers: bundle,
};
const told: Record<string, { works: boolean; how: string }> = {};
for (const [name, client] of Object.entries(clients))
  told[name] = await client(setting).then(
    (how) => ({ works: true, how }),
    (error: Error) => ({ works: false, how: String(error.stack ?? error) }),
  );
console.log(JSON.stringify(told));
