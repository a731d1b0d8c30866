/** The database of random operations: the demo, an organization with payments, and all players. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { buildSchema } from "graphql";
import { camel } from "../../src/schema/codecNames.ts";
import { createTestDatabase } from "../harness/database.ts";
import { startPayments, type Payments } from "../harness/payments.ts";
import { startReceiver } from "../webhooks/receiver.ts";
import { runWorkflows } from "../workflows/world.ts";
import { players } from "./cast.ts";
import type { Player, Recipe } from "./fuzzer.ts";
import { recipes } from "./recipes.ts";
import type { Records } from "./records.ts";

/** The served schema. */
export const schema = buildSchema(readFileSync(resolve(import.meta.dirname, "../../schema.graphql"), "utf8"));

/** Whether a player has all permissions, so that their access tokens are only refused for lack of scopes. */
export const isOwner = ({ name }: Player): boolean => name === "owner" || name === "owner of the demo";

export interface FuzzWorld {
  world: Payments;
  everybody: Player[];
  recipes: Record<string, Recipe>;
  /** Reads the ids of the database, so that existing records of all types and states are known. */
  learnRecords(records: Records): Promise<void>;
  stop(): Promise<void>;
}

/** @param engine whether executions of workflows are processed meanwhile */
export async function startFuzzWorld({ engine }: { engine: boolean }): Promise<FuzzWorld> {
  const database = await createTestDatabase("demo");
  const world = await startPayments(database, { loopbackWebhooks: true });
  const receiver = await startReceiver();
  const workflows = engine ? await runWorkflows(world) : undefined;
  const everybody = await players(world);
  const bosses = new Map(
    everybody.filter(({ name }) => name.startsWith("owner")).map((player) => [player.home!, player]),
  );
  return {
    world,
    everybody,
    recipes: recipes(world, bosses, () => world.settle(), receiver.url, engine),
    learnRecords: (records) => learnRecords(world, records),
    async stop() {
      await workflows?.stop();
      await receiver.close();
      await world.stop();
      await database.drop();
    },
  };
}

async function learnRecords({ owner, harbour, summit }: Payments, records: Records): Promise<void> {
  records.clear();
  const parties: Record<string, string> = { [harbour.id]: "Harbour", [summit.id]: "Summit" };
  const { rows } = await owner.query<{ name: string; owned: boolean; deletable: boolean }>(
    `select c.relname as name, exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'deleted_at') as deletable,
        exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'organization_id') as owned
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'id' and a.atttypid = 'uuid'::regtype
     where c.relnamespace = 'app_public'::regnamespace and c.relkind in ('r', 'p')`,
  );
  for (const { name, owned, deletable } of rows) {
    const type = camel(`_${name.replace(/ies$/, "y").replace(/(?<=ss|x|ch)es$|s$/, "")}`);
    const of = name === "organizations" ? "id" : owned ? "organization_id" : "null";
    const { rows: found } = await owner.query<{ id: string; of: string | null }>(
      `select id, ${of} as of from app_public.${name} ${deletable ? "where deleted_at is null" : ""} order by id`,
    );
    for (const { id, of: organization } of found)
      records.add(type, id, organization ? (parties[organization] ?? "Lark") : "Nobody");
  }
}
