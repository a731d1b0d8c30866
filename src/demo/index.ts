import { Client } from "pg";
import { leads } from "./leads.ts";
import { messages } from "./messages.ts";
import { people } from "./people.ts";
import { projects } from "./projects.ts";
import { Stage } from "./stage.ts";

export { demoUser } from "./people.ts";

/**
 * The demo organization, one file per chapter. Each chapter acts as its people through the operations of the API, so that
 * every rule, state and event is the product's own; a later chapter finds on the stage what the earlier ones made.
 */
const chapters: readonly ((stage: Stage) => Promise<void>)[] = [people, projects, leads, messages];

/** Held while one process loads the demo; the others wait and then find it there. */
const lockKey = 7_528_000_002n;

/**
 * Loads the demo organization into a database that has no user and no organization yet, in one transaction, and sends no mail.
 * @param ownerUrl the owner's connection to a migrated database.
 * @returns whether it was loaded; false where there is anything already.
 */
export async function loadDemo(ownerUrl: string): Promise<boolean> {
  const client = new Client({ connectionString: ownerUrl });
  await client.connect();
  try {
    await client.query("begin");
    await client.query("select pg_advisory_xact_lock($1)", [lockKey]);
    const { rows } = await client.query<{ empty: boolean }>(
      "select not exists (select from app_public.users) and not exists (select from app_public.organizations) as empty",
    );
    if (!rows[0]?.empty) {
      await client.query("rollback");
      return false;
    }
    const stage = await Stage.open(client);
    for (const chapter of chapters) await chapter(stage);
    await stage.close();
    await client.query("commit");
    return true;
  } finally {
    await client.end();
  }
}
