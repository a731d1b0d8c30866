/**
 * `npm run operators`: lists the operators of the service. `-- add EMAIL` adds the account with that confirmed
 * address; `-- remove EMAIL` removes it. Operators see and change the jobs of all organizations, on the page `/jobs`
 * and over the API.
 */
import { loadConfig } from "../base/config.ts";
import { onConnection } from "../database/onConnection.ts";
import { withDatabase } from "../database/running.ts";
import { ignoreClosedOutput } from "./ignoreClosedOutput.ts";

ignoreClosedOutput();

const statements = {
  add: "select app_private.make_operator($1) as said",
  remove: "select app_private.end_operator($1) as said",
} as const;

try {
  const [what = "list", email, ...more] = process.argv.slice(2);
  const isChange = what === "add" || what === "remove";
  if (more.length > 0 || (isChange ? !email : what !== "list"))
    throw new Error("Use `npm run operators`, with `-- add EMAIL` or `-- remove EMAIL`.");
  await withDatabase(loadConfig(process.env, ["--migrate-only"]), (loginUrl) =>
    onConnection(loginUrl, async (client) => {
      const { rows } = isChange
        ? await client.query<{ said: string }>(statements[what], [email])
        : await client.query<{ said: string }>("select said from app_private.operator_list() said");
      for (const { said } of rows) console.log(said);
      if (what === "list" && rows.length === 0) console.log("Nobody is an operator.");
    }),
  );
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
