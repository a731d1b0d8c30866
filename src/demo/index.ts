import type { Client } from "pg";
import { DatabaseClient } from "../database/client.ts";
import { makePool } from "../database/pool.ts";
import { createFiles, type Files } from "../files/files.ts";
import type { FileStore } from "../providers/files/index.ts";
import { catalogue } from "./demoCatalogue.ts";
import { deals } from "./deals.ts";
import { inventory } from "./inventory.ts";
import { leads } from "./leads.ts";
import { messages } from "./demoMessages.ts";
import { demoSignIn, demoUser, people } from "./people.ts";
import { pictures } from "./pictures.ts";
import { projects } from "./projects.ts";
import { Stage } from "./stage.ts";
import { workflows } from "./demoWorkflows.ts";

export { demoSignIn, demoUser };

/**
 * The demo organization, one file per part. Each part acts as its users through the operations of the API, so that
 * all rules, states and events apply. Later parts find the records of earlier ones on the stage.
 */
const parts: readonly ((stage: Stage) => Promise<void>)[] = [
  people,
  projects,
  inventory,
  catalogue,
  leads,
  messages,
  deals,
  workflows,
];

export interface DemoFiles {
  store: FileStore;
  /** Folder for incoming content. */
  incomingFolder: string;
}

/** Contents are registered outside of the transaction, so that the sweep finds them even if the transaction fails. */
async function withFiles(
  connectionString: string,
  { store, incomingFolder }: DemoFiles,
  work: (files: Files) => Promise<void>,
): Promise<void> {
  const pool = makePool({ connectionString, max: 1 });
  try {
    await work(createFiles({ store, pool, incomingFolder }));
  } finally {
    await pool.end();
  }
}

/** Held while one process loads the demo. The others wait and then find it loaded. */
const lockKey = 7_528_000_002n;

/**
 * State of the demo: loaded by this start, present from an earlier one, or absent because the database has other
 * data.
 */
export type DemoState = "loaded" | "present" | "absent";

/**
 * Loads the demo organization into a database that has no user and no organization yet. Runs in one transaction and
 * sends no mail.
 * @param ownerUrl the owner's connection to a migrated database
 * @param files the store for its pictures; without it the demo has none
 */
export async function loadDemo(ownerUrl: string, files?: DemoFiles): Promise<DemoState> {
  const client: Client = new DatabaseClient({ connectionString: ownerUrl });
  await client.connect();
  try {
    await client.query("begin");
    await client.query("select pg_advisory_xact_lock($1)", [lockKey]);
    const { rows } = await client.query<{ empty: boolean; present: boolean }>(
      `select not exists (select from app_public.users) and not exists (select from app_public.organizations) as empty,
         app_private.account_named($1) is not null as present`,
      [demoUser.email],
    );
    if (!rows[0]!.empty) {
      await client.query("rollback");
      return rows[0]!.present ? "present" : "absent";
    }
    const stage = await Stage.open(client);
    for (const part of parts) await part(stage);
    if (files) await withFiles(ownerUrl, files, (taken) => pictures(stage, taken));
    await stage.close();
    await client.query("commit");
    return "loaded";
  } finally {
    await client.end();
  }
}
