/**
 * References to other records in inputs: of each column of each table that viewers write, an id of another organization is refused in
 * the same words as one that does not exist. Generated from the catalog.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { randomUUID } from "node:crypto";
import type { DatabaseError } from "pg";
import { startTwoOrganizations, type TwoOrganizations } from "../harness/twoOrganizations.ts";

interface Reference {
  table: string;
  column: string;
  refersTo: string;
  /** The referenced column. */
  key: string;
}

interface Viewer {
  /** Undefined for the service. */
  role?: "plat_user" | "plat_anonymous";
  settings: Record<string, string>;
}

let world: TwoOrganizations;
let references: Reference[];
let viewers: Record<string, Viewer>;
const service: Viewer = { settings: {} };

beforeAll(async () => {
  world = await startTwoOrganizations();
  const { client, stranger } = world;
  // What everybody sees of them is not what this is about.
  await client.query(`begin; set local session_replication_role = replica;
    update app_public.projects set visibility = 'PRIVATE'; update app_public.organizations set has_public_project = false; commit`);
  ({ rows: references } = await client.query<Reference>(
    `select distinct c.oid::regclass::text as table, a.attname as column, k.confrelid::regclass::text as "refersTo", t.attname as key
     from pg_proc p join pg_type y on y.oid = p.proargtypes[0] join pg_class c on c.oid = y.typrelid
     join pg_constraint k on k.conrelid = c.oid and k.contype = 'f'
     join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
     join pg_attribute t on t.attrelid = k.confrelid and t.attnum = k.confkey[1]
     where p.proname = 'clean_values' and p.pronamespace = 'app_hidden'::regnamespace order by 1, 2, 3`,
  ));
  const { rows } = await client.query<{ id: string }>(
    "insert into app_public.users (first_name, last_name) values ('Nobody', 'Special') returning id",
  );
  viewers = {
    "an owner": { role: "plat_user", settings: { user_id: stranger } },
    "a token": {
      role: "plat_user",
      settings: { user_id: stranger, token_id: randomUUID(), scopes: "report.read" },
    },
    "somebody without an organization": { role: "plat_user", settings: { user_id: rows[0]!.id } },
    "a visitor": { role: "plat_anonymous", settings: {} },
  };
}, 120_000);
afterAll(() => world?.end());

/** What an input with the id as reference is refused with, and its details for clients; null if it is accepted. */
async function refusalOf(viewer: Viewer, { table, column }: Reference, id: string): Promise<string | null> {
  return await as(viewer, async () => {
    try {
      await world.client.query(
        `select app_hidden.clean_values(null::${table}, jsonb_build_object($1::text, $2::text))`,
        [column, id],
      );
      return null;
    } catch (error) {
      const { message, detail } = error as DatabaseError;
      return `${message} ${detail}`;
    }
  });
}

/** Whether the viewer sees the record that the id refers to. */
async function sees(viewer: Viewer, { refersTo, key }: Reference, id: string): Promise<boolean> {
  return await as(viewer, async () => {
    const { rowCount } = await world.client.query(`select from ${refersTo} where ${key} = $1`, [id]);
    return rowCount! > 0;
  });
}

async function as<T>({ role, settings }: Viewer, run: () => Promise<T>): Promise<T> {
  const { client } = world;
  await client.query("begin");
  try {
    await client.query("select set_config('plat.' || s.key, s.value, true) from json_each_text($1) s", [
      JSON.stringify(settings),
    ]);
    if (role) await client.query(`set local role ${role}`);
    return await run();
  } finally {
    await client.query("rollback");
  }
}

const named = ({ table, column }: Reference) => `${table}.${column}`;
/** What no viewer reads, and only the service refers to. */
const isInternal = ({ refersTo }: Reference) => refersTo === "app_hidden.claims";
/** Apps are offered to whoever is signed in. */
const isOffered = ({ refersTo }: Reference) => refersTo === "app_public.integration_apps";

test("to a record that does not exist are refused to everybody, and to the service", async () => {
  for (const [name, viewer] of [...Object.entries(viewers), ["the service", service] as const])
    for (const reference of references) {
      if (isInternal(reference) && viewer.role) continue;
      const refusal = await refusalOf(viewer, reference, randomUUID());
      expect([name, named(reference), refusal]).toEqual([
        name,
        named(reference),
        expect.stringMatching(/^There is no such [\w ]+\. .*"NOT_FOUND"/),
      ]);
    }
  expect(references.length).toBeGreaterThan(200);
});

test("to a record of another organization are refused in the same words", async () => {
  for (const [name, viewer] of Object.entries(viewers))
    for (const reference of references) {
      const [id] = world.theirs.get(reference.refersTo) ?? [];
      if (!id || isOffered(reference)) continue;
      const refusal = await refusalOf(viewer, reference, id);
      expect([name, named(reference), refusal]).toEqual([
        name,
        named(reference),
        await refusalOf(viewer, reference, randomUUID()),
      ]);
    }
});

test("to a record of their own organization are accepted from those who see it, and from nobody else", async () => {
  const accepted: Record<string, number> = {};
  for (const [name, viewer] of Object.entries(viewers))
    for (const reference of references) {
      const [id] = world.ours.get(reference.refersTo) ?? [];
      if (!id || isOffered(reference)) continue;
      const isAccepted = (await refusalOf(viewer, reference, id)) === null;
      expect([name, named(reference), isAccepted]).toEqual([
        name,
        named(reference),
        await sees(viewer, reference, id),
      ]);
      accepted[name] = (accepted[name] ?? 0) + Number(isAccepted);
    }
  expect(accepted).toEqual({
    "an owner": expect.any(Number),
    "a token": expect.any(Number),
    "somebody without an organization": 0,
    "a visitor": 0,
  });
  expect(accepted["an owner"]).toBeGreaterThan(200);
  expect(accepted["a token"]).toBeLessThan(accepted["an owner"]! / 2);
});
