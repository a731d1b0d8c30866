/**
 * Random operations of the whole schema by everybody: nothing fails inside, nothing tells outsiders of what is not theirs, and what must
 * hold of deals holds. The long form (`npm run test:long -- test/fuzz`) goes on until every operation has succeeded.
 */
import { afterAll, beforeAll, expect } from "@jest/globals";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { buildSchema } from "graphql";
import { demoUser, loadDemo } from "../../src/demo/index.ts";
import { broken } from "../deals/invariants.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { startPayments, type Payments } from "../harness/payments.ts";
import type { Person } from "../harness/api.ts";
import { camel } from "../../src/plugins/codecs.ts";
import { long, randomFrom, testWithSeeds } from "../harness/seeds.ts";
import { programOf } from "../harness/world.ts";
import { Fuzzer, type Player } from "./fuzzer.ts";
import type { Records } from "./records.ts";
import { foreignIds, privateTables, stringsOf } from "./privacy.ts";
import { recipes } from "./recipes.ts";

const steps = Number(process.env.FUZZ_STEPS ?? (long ? 30_000 : 250));
const schema = buildSchema(readFileSync(resolve(import.meta.dirname, "../../schema.graphql"), "utf8"));
let database: TestDatabase;
let world: Payments;
let tables: string[];

beforeAll(async () => {
  database = await createTestDatabase();
  await loadDemo(database.ownerUrl);
  tables = await privateTables((world = await startPayments(database)).owner);
}, 300_000);
afterAll(async () => {
  await world.stop();
  await database.drop();
});

async function players(): Promise<Player[]> {
  const { owen, ada, max, sam, bob, bea, olga, anonymous } = world;
  const host = await (globalThis.platHost?.() ?? import("../harness/host.ts"));
  const signIn = async (id: string) => {
    const { rows } = await world.owner.query<{ token: string }>(
      `select (app_public.login(i.email, p.password_hash)).token::text from app_hidden.user_identities i
       join app_private.user_passwords p using (user_id) where user_id = $1`,
      [id],
    );
    return world.person(host.signLoginToken(rows[0]!.token), id);
  };
  const user = (name: string, person: Person, weight: number, party = "Harbour"): Player => ({
    name,
    person,
    weight,
    party,
    renew: () => signIn(person.id!),
  });
  const demo = await world.owner.query<{ id: string }>("select app_private.account_named($1) as id", [
    demoUser.email,
  ]);
  const reader = () => programOf(world, owner.person, { scopes: ["lead.read"] });
  const owner = user("owner", owen, 10);
  return [
    owner,
    user("admin", ada, 2),
    user("member", max, 3),
    user("seller", sam, 2),
    user("builder", bob, 1),
    user("buyer", bea, 3),
    { name: "program", person: await reader(), weight: 1, party: "Harbour", renew: reader },
    user("newcomer", await world.signUp("Nia Newcomer"), 2),
    user("owner elsewhere", olga, 3, "Summit"),
    user("owner of the demo", await signIn(demo.rows[0]!.id), 10, "Lark"),
    { name: "visitor", person: anonymous, weight: 2, party: "Nobody" },
  ];
}

/** What is in the database before, so that records of all kinds and states are known. */
async function learnRecords(records: Records): Promise<void> {
  const parties: Record<string, string> = { [world.harbour.id]: "Harbour", [world.summit.id]: "Summit" };
  const { rows } = await world.owner.query<{ name: string; owned: boolean }>(
    `select c.relname as name, exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'organization_id') as owned
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'id' and a.atttypid = 'uuid'::regtype
     where c.relnamespace = 'app_public'::regnamespace and c.relkind = 'r'`,
  );
  for (const { name, owned } of rows) {
    const type = camel(`_${name.replace(/ies$/, "y").replace(/(?<=ss|x|ch)es$|s$/, "")}`);
    const of = name === "organizations" ? "id" : owned ? "organization_id" : "null";
    const { rows: found } = await world.owner.query<{ id: string; of: string | null }>(
      `select id, ${of} as of from app_public.${name}`,
    );
    for (const { id, of: organization } of found)
      records.add(type, id, organization ? (parties[organization] ?? "Lark") : "Nobody");
  }
}

testWithSeeds(
  "random operations by everybody",
  async (seed) => {
    const random = randomFrom(seed);
    const everybody = await players();
    const fuzzer = new Fuzzer(schema, everybody, random, recipes(world));
    await learnRecords(fuzzer.records);
    const faults: string[] = [];
    /** What outsiders were told by which operation. */
    const told = new Map<Player, Map<string, string>>();
    for (let step = 0; step < steps && faults.length < 10; step++) {
      const { player, operation, variables, answer } = await fuzzer.step();
      for (const { message, extensions } of answer.errors ?? [])
        if (!extensions?.code || extensions.code === "INTERNAL")
          faults.push(`${player.name} ${operation} ${JSON.stringify(variables)}: ${message}`);
      if (player.party === "Summit" || player.party === "Nobody") {
        const sent = stringsOf(variables);
        const heard = told.get(player) ?? told.set(player, new Map()).get(player)!;
        for (const text of stringsOf(answer.data)) if (!sent.has(text)) heard.set(text, operation);
      }
      if (long && fuzzer.unreached.length === 0 && step > 5000) break;
    }
    if (process.env.FUZZ_TELL) tell(fuzzer);
    expect(faults).toEqual([]);
    for (const [{ name, person }, heard] of told)
      expect([name, await foreignIds(world.owner, tables, heard, person.id)]).toEqual([name, []]);
    expect(await broken(world.owner)).toEqual({});
    if (process.env.FUZZ_TELL) tell(fuzzer);
    if (long) expect(fuzzer.unreached).toEqual([]);
  },
  long || process.env.FUZZ_STEPS ? 3_600_000 : 120_000,
);

function tell({ operations }: Fuzzer): void {
  for (const { field, tries, successes, refusals } of operations)
    if (successes === 0)
      process.stderr.write(
        `${field.name}: ${tries} tries; ${[...refusals]
          .toSorted((a, b) => b[1] - a[1])
          .slice(0, 3)
          .map(([text, count]) => `${count} × ${text}`)
          .join(" | ")}\n`,
      );
  process.stderr.write(
    `${operations.filter(({ successes }) => successes > 0).length} of ${operations.length} reached\n`,
  );
}
