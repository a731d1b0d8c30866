/**
 * Who reads the events of each kind of record whose events require a permission of their own: besides the permission, the viewer must
 * see the record. Generated from the catalog, with the rows of rowWorld.ts. The viewer is a buyer, who sees their own records without that
 * permission, and is the owner of the developer's organization, or a member of another that has every permission in the project.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { startRows } from "../harness/rowReach.ts";
import type { RowWorld } from "../harness/rowWorld.ts";

/** A kind of record with the permission that its events require. */
interface Kind {
  subject: string;
  table: string;
  permission: string;
}

/** What a viewer sees of a kind: the ids of records of which there are events, and those that events are about. */
interface Sight {
  records: string[];
  events: string[];
}

/** Organizations with their part in the project, and the role of a member in them. */
const parts = {
  owner: ["Harbour", "OWNER"],
  member: ["Harbour", "MEMBER"],
  seller: ["Sisters", "MEMBER"],
  builder: ["Brick", "MEMBER"],
  marketer: ["Media", "MEMBER"],
  "member of an organization with every permission": ["Bank", "MEMBER"],
  "owner of an organization without a part": ["Summit", "OWNER"],
} as const;
type Part = keyof typeof parts;

let database: TestDatabase;
let client: Client;
let world: RowWorld;
let kinds: Kind[];
let permissions: string[];

beforeAll(async () => {
  database = await createTestDatabase();
  client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
  world = await startRows(client);
  ({ rows: kinds } = await client.query<Kind>(
    `select subject, 'app_public.' || table_name as table, event_permission as permission from app_hidden.record_types
     where event_permission is not null order by 1`,
  ));
  // Readers of the audit trail read all events.
  const { rows } = await client.query<{ permission: string }>(
    `select permission from app_private.role_permissions where permission <> 'audit.read'
     union select 'purchase.own' order by 1`,
  );
  permissions = rows.map(({ permission }) => permission);
  // One event of each record of the project View, also of those that are deleted, and no others.
  await client.query(`set session_replication_role = replica; delete from app_public.events`);
  for (const { subject, table } of kinds)
    await client.query(
      `insert into app_public.events (id, stream_id, organization_id, project_id, sequence, name, subject_type, subject_id, data)
       select gen_random_uuid(), r.organization_id, r.organization_id, r.project_id, row_number() over () + $3, $1 || '.updated', $1, r.id, '{}'
       from ${table} r join rows.labels l on l.relation = $2::regclass and l.key = r.id::text
       where l.label like 'View/%'`,
      [subject, table, 1000 * kinds.findIndex((kind) => kind.subject === subject)],
    );
  await client.query(`set session_replication_role = origin;
    create table rows.subjects as select subject_id as id from app_public.events;
    grant select on rows.subjects to plat_user`);
}, 120_000);
afterAll(async () => {
  await client?.end();
  await database?.drop();
});

/**
 * What the buyer sees.
 * @param part what they are besides; undefined for nothing
 * @param scopes those of their token; undefined without one
 */
async function seen({ subject, table }: Kind, part?: Part, scopes?: string[]): Promise<Sight> {
  const { user } = world.people.find(({ name }) => name === "buyer")!;
  await client.query("begin; set local session_replication_role = replica");
  try {
    if (part)
      await client.query(
        `insert into app_public.organization_user_connections (organization_id, user_id, role)
         select id, $2, $3 from app_public.organizations where name = $1`,
        [parts[part][0], user, parts[part][1]],
      );
    const token = scopes && { scopes: scopes.join(","), token_id: randomUUID() };
    await client.query("select set_config('plat.' || s.key, s.value, true) from json_each_text($1) s", [
      JSON.stringify({ user_id: user, ...token }),
    ]);
    await client.query("set local role plat_user");
    const { rows } = await client.query<Sight>(
      `select array(select r.id from ${table} r join rows.subjects using (id) order by 1) as records,
         array(select subject_id from app_public.events where subject_type = $1 order by 1) as events`,
      [subject],
    );
    return rows[0]!;
  } finally {
    await client.query("rollback");
  }
}

const withPermission: Part[] = ["owner", "member of an organization with every permission"];

test("those of all records that the viewer sees, with the permission", async () => {
  for (const part of withPermission)
    for (const kind of kinds) {
      const { records, events } = await seen(kind, part, permissions);
      expect([part, kind.subject, events]).toEqual([part, kind.subject, records]);
      expect(records.length).toBeGreaterThan(5);
    }
});

test("none by a token that lacks only the permission, though it shows some of the records", async () => {
  for (const part of withPermission)
    for (const kind of kinds) {
      const { records, events } = await seen(
        kind,
        part,
        permissions.filter((permission) => permission !== kind.permission),
      );
      expect([part, kind.subject, events]).toEqual([part, kind.subject, []]);
      expect(records.length).toBeGreaterThan(0);
    }
});

test("none by buyers, also if they have an organization without a part in the project", async () => {
  for (const part of [undefined, "owner of an organization without a part"] as const)
    for (const kind of kinds) {
      const { records, events } = await seen(kind, part);
      expect([part, kind.subject, events]).toEqual([part, kind.subject, []]);
      expect(records.length).toBeGreaterThan(0);
    }
});

test("those of the kinds whose permission the role has", async () => {
  const read: Partial<Record<Part, string[]>> = {};
  for (const part of ["member", "seller", "builder", "marketer"] as const) {
    read[part] = [];
    for (const kind of kinds) if ((await seen(kind, part)).events.length > 0) read[part].push(kind.subject);
  }
  const inventory = ["floor_plan", "lot", "unit"];
  expect(read).toEqual({
    // Neither charges, costs of options and negotiations, nor documents of identity.
    member: [
      ...["agreement", "agreement_file", "agreement_signer", "appointment", "deposit", "promotion"],
      ...["reservation", "reservation_document", "unit_hold", ...inventory],
    ].toSorted(),
    seller: inventory,
    builder: [],
    marketer: ["promotion"],
  });
});
