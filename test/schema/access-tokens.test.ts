import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { Client, type Pool } from "pg";
import { createTestDatabase, poolOf, type TestDatabase } from "../harness/database.ts";
import { createPeople, type People } from "../harness/people.ts";
import { until } from "../harness/until.ts";

// Tokens that create tokens while they are being revoked: in any order of the transactions, no child of a
// revoked token remains valid.

let database: TestDatabase;
let owner: Pool;
let people: People;
let ann: string;
const open: Client[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  owner = poolOf(database.ownerUrl, 2);
  people = createPeople(database.ownerUrl);
  ann = await people.person("ann");
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((client) => client.end()));
});
afterAll(async () => {
  await people.end();
  await owner.end();
  await database.drop();
});

interface Token {
  id: string;
  token: string;
}

/** A transaction of Ann, with one of her access tokens or signed in. */
async function transaction(token?: Token): Promise<Client> {
  const client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
  open.push(client);
  await client.query("begin; set local role plat_user");
  await client.query("select set_config('plat.user_id', $1, true), set_config('plat.token_id', $2, true)", [
    ann,
    token?.id ?? "",
  ]);
  return client;
}

const creation = "select id, token from app_public.create_access_token('child')";
const revocation = "select id from app_public.revoke_access_token($1)";

async function create(parent?: Token): Promise<Token> {
  const client = await transaction(parent);
  const { rows } = await client.query<Token>(creation);
  await client.query("commit");
  return rows[0]!;
}

/** Whether requests with the token are answered. */
async function works({ token }: Token): Promise<boolean> {
  const { rowCount } = await owner.query(
    "select from app_private.authenticate_access_token(sha256(convert_to($1, 'UTF8')))",
    [token],
  );
  return rowCount === 1;
}

/** Waits until a statement waits for a lock. */
const somebodyWaits = () =>
  until(
    async () =>
      (
        await owner.query(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        )
      ).rowCount,
    (amount) => amount === 1,
  );

test("a child that is created but not committed while its parent is revoked ends with it", async () => {
  const parent = await create();
  const creating = await transaction(parent);
  const { rows } = await creating.query<Token>(creation);
  const revoking = await transaction();
  const revoked = revoking.query(revocation, [parent.id]);
  await somebodyWaits();
  await creating.query("commit");
  await revoked;
  await revoking.query("commit");
  expect(await works(parent)).toBe(false);
  expect(await works(rows[0]!)).toBe(false);
  expect((await owner.query("select from app_public.access_tokens where revoked_at is null")).rowCount).toBe(
    0,
  );
});

test("a parent that is being revoked cannot create children", async () => {
  const parent = await create();
  const revoking = await transaction();
  await revoking.query(revocation, [parent.id]);
  const creating = await transaction(parent);
  const created = creating.query(creation);
  // A handler is attached immediately, so that an early refusal does not count as unhandled.
  const refused = created.catch((error: unknown) => error);
  await somebodyWaits();
  await revoking.query("commit");
  expect(await refused).toMatchObject({
    code: "PLAT0",
    detail: expect.stringContaining("UNAUTHENTICATED"),
  });
  expect(
    (await owner.query("select from app_public.access_tokens where parent_id = $1", [parent.id])).rowCount,
  ).toBe(0);
});

test("a grandchild ends with the grandparent, also one that is created at that moment", async () => {
  const grandparent = await create();
  const parent = await create(grandparent);
  const creating = await transaction(parent);
  const { rows } = await creating.query<Token>(creation);
  const revoking = await transaction();
  const revoked = revoking.query(revocation, [grandparent.id]);
  await somebodyWaits();
  await creating.query("commit");
  await revoked;
  await revoking.query("commit");
  for (const token of [grandparent, parent, rows[0]!]) expect(await works(token)).toBe(false);

  const other = await create();
  const below = await create(await create(other));
  const late = await transaction();
  await late.query(revocation, [other.id]);
  const again = await transaction(below);
  const refused = again.query(creation).catch((error: unknown) => error);
  await somebodyWaits();
  await late.query("commit");
  expect(await refused).toMatchObject({ code: "PLAT0" });
});

test("objects that a token creates while it is revoked end with it, in any order", async () => {
  const organization = await people.organization("Homes", { [ann]: "OWNER" });
  const make = `select id from app_public.create_workflow(jsonb_build_object('organization_id', '${organization}', 'name', 'x',
    'subject_type', 'LEAD', 'trigger', '{"type": "MANUAL"}'::jsonb), array[row('STOP', null, '{}', null, null)::app_public.workflow_step_input], '{}')`;
  const [early, late] = [await create(), await create()];
  const making = await transaction(early);
  const { rows } = await making.query<{ id: string }>(make);
  await making.query("select from app_public.enable_workflow($1)", [rows[0]!.id]);
  const revoking = await transaction();
  const revoked = revoking.query(revocation, [early.id]);
  await somebodyWaits();
  await making.query("commit");
  await revoked;
  await revoking.query("commit");
  expect(
    (
      await owner.query("select status, disabled_reason from app_public.workflows where id = $1", [
        rows[0]!.id,
      ])
    ).rows,
  ).toEqual([{ status: "DISABLED", disabled_reason: 'The access token "child" was revoked.' }]);

  const first = await transaction();
  await first.query(revocation, [late.id]);
  const second = await transaction(late);
  const refused = second.query(make).catch((error: unknown) => error);
  await somebodyWaits();
  await first.query("commit");
  expect(await refused).toMatchObject({ code: "PLAT0", detail: expect.stringContaining("UNAUTHENTICATED") });
});

test("a token is only valid if its ancestors are", async () => {
  const [first] = [await create()];
  const second = await create(first);
  const third = await create(second);
  expect(await works(third)).toBe(true);
  // Even a child that was not revoked itself is not valid.
  await owner.query("update app_public.access_tokens set revoked_at = now() where id = $1", [first.id]);
  expect([await works(first), await works(second), await works(third)]).toEqual([false, false, false]);
  await owner.query("update app_public.access_tokens set revoked_at = null where id = $1", [first.id]);
  expect(await works(third)).toBe(true);
  await owner.query("update app_public.access_tokens set expires_at = now() where id = $1", [second.id]);
  expect([await works(first), await works(second), await works(third)]).toEqual([true, false, false]);
});

test("of two concurrent creations of the last token within the limit, one is refused", async () => {
  await owner.query("update app_public.access_tokens set revoked_at = now() where revoked_at is null");
  await owner.query(
    "insert into app_public.access_tokens (user_id, name, prefix) select $1, 'n', 'plat_' from generate_series(1, 99)",
    [ann],
  );
  const [one, two] = [await transaction(), await transaction()];
  await one.query(creation);
  const second = two.query(creation).catch((error: unknown) => error);
  await somebodyWaits();
  await one.query("commit");
  expect(await second).toMatchObject({ detail: expect.stringContaining("LIMIT_EXCEEDED") });
});
