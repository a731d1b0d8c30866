/** Claims on units and lots are exclusive under concurrent requests, also if an expired claim was not removed yet. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createTestDatabase, poolOf, type TestDatabase } from "../harness/database.ts";
import { createPeople, refusal, type People } from "../harness/people.ts";

let database: TestDatabase;
let people: People;
let owen: string;
let project: string;

beforeAll(async () => {
  database = await createTestDatabase();
  people = createPeople(database.ownerUrl);
  owen = await people.person("Owen");
  const organization = await people.organization("Harbour Homes", { [owen]: "OWNER" });
  const { rows } = await people.owner.query(
    "insert into app_public.projects (organization_id, title) values ($1, 'Harbour View') returning id",
    [organization],
  );
  project = rows[0].id;
});
afterAll(async () => {
  await people.end();
  await database.drop();
});

async function lot(values: { multiUnit?: boolean; price?: number; status?: string } = {}): Promise<string> {
  const { rows } = await people.owner.query(
    `insert into app_public.lots (project_id, number, status, price, multi_unit) values ($1, $2, $3, $4, $5) returning id`,
    [project, randomUUID(), values.status ?? "AVAILABLE", values.price ?? 50_000, values.multiUnit ?? false],
  );
  return rows[0].id;
}

async function unit(lotId: string | null = null, price = 400_000): Promise<string> {
  const { rows } = await people.owner.query(
    "insert into app_public.units (project_id, title, status, price, lot_id) values ($1, 'Home', 'AVAILABLE', $2, $3) returning id",
    [project, price, lotId],
  );
  return rows[0].id;
}

interface Wish {
  unit?: string;
  lot?: string;
  kind?: string;
  subject?: string;
  expires?: string;
}
const take = (wish: Wish) =>
  people.owner
    .query("select (app_private.take_claim($1, $2, $3, 'reservation', $4, now() + $5::interval)).*", [
      wish.unit ?? null,
      wish.lot ?? null,
      wish.kind ?? "RESERVATION",
      wish.subject ?? randomUUID(),
      wish.expires ?? null,
    ])
    .then(({ rows }) => rows[0]);
const release = async (claim: { id: string }) =>
  (await people.owner.query("select app_private.release_claim($1, 'CANCELLED') as released", [claim.id]))
    .rows[0].released;
const read = async (table: "units" | "lots", id: string) =>
  (
    await people.owner.query(`select status, price::float as price from app_public.${table} where id = $1`, [
      id,
    ])
  ).rows[0];
const byHand = (table: "units" | "lots", input: Record<string, unknown>) =>
  people.as(owen, `select (app_hidden.update_record(null::app_public.${table}, $1)).status`, [input]);

/** Outcomes of concurrent claims, on up to the maximum number of connections of the cluster. */
async function rush(wishes: Wish[]): Promise<Record<string, number>> {
  const pool = poolOf(database.ownerUrl, 25);
  const outcomes: Record<string, number> = {};
  const count = (outcome: string) => (outcomes[outcome] = (outcomes[outcome] ?? 0) + 1);
  try {
    await Promise.all(
      wishes.map((wish) =>
        pool
          .query(
            "select app_private.take_claim($1, $2, 'RESERVATION', 'reservation', $3, now() + '1 hour')",
            [wish.unit ?? null, wish.lot ?? null, randomUUID()],
          )
          // A refusal of the service has a code; any other error, such as a deadlock, has its SQLSTATE.
          .then(
            () => count("taken"),
            (error) => count(error.code === "PLAT0" ? JSON.parse(error.detail).code : error.code),
          ),
      ),
    );
  } finally {
    await pool.end();
  }
  return outcomes;
}
const activeClaims = async (ids: string[]) =>
  (
    await people.owner.query(
      "select from app_hidden.claims where (unit_id = any ($1) or lot_id = any ($1)) and released_at is null",
      [ids],
    )
  ).rowCount;

test("of 1,000 concurrent claims on a unit, exactly one succeeds", async () => {
  const home = await unit(await lot());
  expect(await rush(Array.from({ length: 1000 }, () => ({ unit: home })))).toEqual({
    taken: 1,
    INVENTORY_UNAVAILABLE: 999,
  });
  expect(await activeClaims([home])).toBe(1);
  expect(await read("units", home)).toEqual({ status: "RESERVED", price: 400_000 });
});

test("exactly one of 300 concurrent claims on a lot, or on its two units, succeeds after the previous one has expired", async () => {
  const land = await lot();
  const [left, right] = [await unit(land), await unit(land)];
  await take({ unit: left, expires: "-1 second" });
  const wishes = Array.from(
    { length: 300 },
    (_, i) => [{ unit: left }, { lot: land }, { unit: right }][i % 3]!,
  );
  // Meanwhile the team updates them: all locks are taken in the same order.
  const changes = (async () => {
    for (let n = 1; n <= 10; n += 1) {
      await byHand("units", { id: left, price: 400_000 + n });
      await byHand("lots", { id: land, phase: `Phase ${n}` });
    }
  })();
  expect(await rush(wishes)).toEqual({ taken: 1, INVENTORY_UNAVAILABLE: 299 });
  await changes;
  expect(await activeClaims([left, right, land])).toBe(1);
});

test("the table refuses a second active claim", async () => {
  const home = await unit(await lot());
  const claim = await take({ unit: home });
  for (const column of ["unit_id", "lot_id"])
    await expect(
      people.owner.query(
        `insert into app_hidden.claims (organization_id, project_id, ${column}, kind, subject_type, subject_id)
         select organization_id, project_id, ${column}, 'HOLD', 'reservation', uuidv7() from app_hidden.claims where id = $1`,
        [claim.id],
      ),
    ).rejects.toMatchObject({ code: "23505" });
  await expect(
    people.owner.query(
      "insert into app_hidden.claims (organization_id, project_id, kind, subject_type, subject_id) values ($1, $2, 'HOLD', 'x', uuidv7())",
      [claim.organization_id, claim.project_id],
    ),
  ).rejects.toMatchObject({ code: "23514" });
});

test("a claim on a unit claims its lot, and vice versa, unless several units are on it", async () => {
  const land = await lot();
  const [first, second] = [await unit(land), await unit(land)];
  const claim = await take({ unit: first, expires: "2 hours" });
  expect([await read("units", first), await read("lots", land)]).toMatchObject([
    { status: "RESERVED" },
    { status: "RESERVED" },
  ]);
  expect(await refusal(take({ unit: second }))).toMatchObject({
    code: "INVENTORY_UNAVAILABLE",
    claimedUntil: expect.stringMatching(/^\d{4}-.*Z$/),
  });
  expect(await refusal(take({ lot: land }))).toMatchObject({ code: "INVENTORY_UNAVAILABLE", field: "lotId" });
  await release(claim);
  const land2 = await take({ lot: land });
  expect(await refusal(take({ unit: second }))).toMatchObject({ code: "INVENTORY_UNAVAILABLE" });
  expect(await read("units", second)).toMatchObject({ status: "AVAILABLE" });
  await release(land2);

  const shared = await lot({ multiUnit: true });
  const homes = [await unit(shared), await unit(shared)];
  await take({ unit: homes[0] });
  await take({ unit: homes[1] });
  expect(await read("lots", shared)).toMatchObject({ status: "AVAILABLE" });
  expect(await refusal(take({ lot: shared }))).toMatchObject({ code: "INVENTORY_UNAVAILABLE" });
});

test("a lot that is only sold with its home keeps its status, but is claimed too", async () => {
  const land = await lot({ status: "UNRELEASED" });
  await take({ unit: await unit(land) });
  expect(await read("lots", land)).toMatchObject({ status: "UNRELEASED" });
  expect(await refusal(byHand("lots", { id: land, status: "AVAILABLE" }))).toMatchObject({
    code: "INVENTORY_UNAVAILABLE",
    field: "status",
  });
});

test("the next claim releases an expired one", async () => {
  const home = await unit(await lot());
  const old = await take({ unit: home, expires: "-1 second" });
  expect(await read("units", home)).toMatchObject({ status: "RESERVED" });
  const next = await take({ unit: home, kind: "PURCHASE" });
  expect(next.id).not.toBe(old.id);
  expect(await read("units", home)).toMatchObject({ status: "PENDING" });
  const { rows } = await people.owner.query(
    "select release_reason, released_at is not null as released from app_hidden.claims where id = $1",
    [old.id],
  );
  expect(rows).toEqual([{ release_reason: "EXPIRED", released: true }]);
  // Claims that now belong to another record are unchanged.
  expect(await release(old)).toBe(false);
  expect(await read("units", home)).toMatchObject({ status: "PENDING" });
});

test("the job releases expired claims only", async () => {
  const [over, running, endless] = [await unit(), await unit(), await unit()];
  await take({ unit: over, expires: "-1 minute" });
  await take({ unit: running, expires: "1 hour" });
  await take({ unit: endless });
  const { rows } = await people.owner.query("select app_private.expire_due() as amount");
  expect(rows).toEqual([{ amount: 1 }]);
  expect(await Promise.all([over, running, endless].map((id) => read("units", id)))).toMatchObject([
    { status: "AVAILABLE" },
    { status: "RESERVED" },
    { status: "RESERVED" },
  ]);
});

test("when a claim ends, unit and lot are listed again at their former price", async () => {
  const land = await lot({ price: 70_000 });
  const home = await unit(land, 500_000);
  const claim = await take({ unit: home });
  await byHand("units", { id: home, price: 480_000 });
  await byHand("lots", { id: land, price: 60_000 });
  expect(await release(claim)).toBe(true);
  expect(await read("units", home)).toEqual({ status: "AVAILABLE", price: 500_000 });
  expect(await read("lots", land)).toEqual({ status: "AVAILABLE", price: 70_000 });
});

test("the owner of a claim changes its kind and end; a sale keeps its time and price", async () => {
  const home = await unit(null, 500_000);
  const subject = randomUUID();
  const hold = await take({ unit: home, kind: "HOLD", subject, expires: "10 minutes" });
  expect(await read("units", home)).toMatchObject({ status: "HELD" });
  const purchase = await take({ unit: home, kind: "PURCHASE", subject });
  expect(purchase).toMatchObject({ id: hold.id, kind: "PURCHASE", expires_at: null });
  const set = (status: string, price: number | null = null) =>
    people.owner.query(
      "select app_private.set_inventory(array[c], $2, false, $3) from app_hidden.claims c where c.id = $1",
      [purchase.id, status, price],
    );
  await set("SOLD", 490_000);
  await set("CLOSED");
  const { rows } = await people.owner.query(
    `select status, sold_price::float, sold_at is not null as sold, closed_at is not null as closed, market_since,
      market_before is not null as counted from app_public.units where id = $1`,
    [home],
  );
  expect(rows).toEqual([
    { status: "CLOSED", sold_price: 490_000, sold: true, closed: true, market_since: null, counted: true },
  ]);
});

test("units that are not for sale cannot be claimed", async () => {
  const { rows } = await people.owner.query(
    "insert into app_public.units (project_id, title) values ($1, 'Not yet') returning id",
    [project],
  );
  expect(await refusal(take({ unit: rows[0].id }))).toMatchObject({
    code: "INVENTORY_UNAVAILABLE",
    claimedUntil: null,
  });
  expect(await refusal(take({ unit: randomUUID() }))).toMatchObject({ code: "NOT_FOUND" });
  expect(await refusal(take({}))).toMatchObject({ code: "BAD_USER_INPUT" });
});

test("a claimed unit or lot cannot be deleted or moved, and its status cannot be set manually", async () => {
  const land = await lot();
  const home = await unit(land);
  const claim = await take({ unit: home });
  for (const [table, id] of [
    ["units", home],
    ["lots", land],
  ] as const) {
    expect(
      await refusal(people.as(owen, `select app_hidden.delete_record(null::app_public.${table}, $1)`, [id])),
    ).toMatchObject({ code: "CONFLICT" });
    expect(await refusal(byHand(table, { id, status: "AVAILABLE" }))).toMatchObject({
      code: "INVALID_TRANSITION",
    });
  }
  expect(await refusal(byHand("units", { id: home, lot_id: await lot() }))).toMatchObject({
    code: "CONFLICT",
    field: "lotId",
  });
  expect(await refusal(byHand("lots", { id: land, multi_unit: true }))).toMatchObject({ code: "CONFLICT" });
  await release(claim);
  await people.as(owen, "select app_hidden.delete_record(null::app_public.units, $1)", [home]);
  await people.as(owen, "select app_hidden.delete_record(null::app_public.lots, $1)", [land]);
  expect(await refusal(take({ unit: home }))).toMatchObject({ code: "NOT_FOUND" });
});

test("the roles of the API can neither read nor write claims", async () => {
  for (const statement of [
    "select from app_hidden.claims",
    "select app_private.take_claim(null, null, 'HOLD', 'x', uuidv7())",
    "select app_private.release_claim(uuidv7(), 'x')",
  ])
    await expect(people.as(owen, statement)).rejects.toMatchObject({ code: "42501" });
});
