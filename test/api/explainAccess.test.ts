/** explainAccess: administrators find out why a person can or cannot see a record. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { programOf } from "../harness/world.ts";

let world: Portfolio;
beforeAll(async () => {
  world = await startPortfolio();
});
afterAll(() => world.stop());

const EXPLAIN = `query ($organizationId: ID!, $userId: ID!, $type: String!, $id: ID!, $field: String) {
  explainAccess(organizationId: $organizationId, userId: $userId, type: $type, id: $id, field: $field) {
    isVisible reason roles permissions missingPermissions mayUpdate mayDelete isFieldVisible } }`;
const variables = (person: Person, id: string, more: object = {}) => ({
  organizationId: world.harbour.id,
  userId: person.id,
  type: "Lead",
  id,
  ...more,
});
const explain = async (person: Person, id: string, more: object = {}, by = world.ada) =>
  (await by.get(EXPLAIN, variables(person, id, more))).explainAccess;
const refusal = async (person: Person, id: string, more: object = {}, by = world.ada) =>
  (await by.refused(EXPLAIN, variables(person, id, more))).code;

test("the reasons are roles, assignments and affiliations, and agree with the person's access", async () => {
  const { max, mia, sam, bob, leads } = world;
  expect(await explain(max, leads.maxs.id)).toMatchObject({
    isVisible: true,
    reason: "OWN_RECORD",
    roles: ["MEMBER"],
    permissions: expect.arrayContaining(["lead.read"]),
    mayUpdate: true,
  });
  expect(await explain(mia, leads.maxs.id)).toMatchObject({
    isVisible: false,
    reason: "NOT_ASSIGNED",
    mayUpdate: false,
    mayDelete: false,
  });
  expect(await explain(sam, leads.sams.id)).toMatchObject({
    isVisible: true,
    reason: "OWN_RECORD",
    roles: ["SELLER (Seller Sisters)"],
  });
  expect(await explain(bob, leads.open.id)).toMatchObject({
    isVisible: false,
    reason: "PERMISSION_MISSING",
    roles: ["BUILDER (Brick Builders)"],
    permissions: [],
    missingPermissions: expect.arrayContaining(["lead.read"]),
  });
  expect(await explain(sam, leads.maxs.id)).toMatchObject({ isVisible: false, reason: "NO_PART", roles: [] });
  for (const [person, id] of [
    [max, leads.maxs.id],
    [mia, leads.maxs.id],
    [sam, leads.open.id],
    [bob, leads.open.id],
  ] as const) {
    const { lead } = await person.get("query ($id: ID!) { lead(id: $id) { id } }", { id });
    expect((await explain(person, id)).isVisible).toBe(lead !== null);
  }
});

test("the organization is given by id or slug", async () => {
  const { max, leads, harbour } = world;
  expect(await explain(max, leads.maxs.id, { organizationId: harbour.slug })).toEqual(
    await explain(max, leads.maxs.id),
  );
  expect(await refusal(max, leads.maxs.id, { organizationId: "no-such-organization" })).toBe("NOT_FOUND");
});

test("does not reveal what the person lacks in other organizations", async () => {
  const { bob, leads, summit, owner } = world;
  const isOverdue = (organizationId: string) =>
    owner
      .query(
        `insert into app_public.organization_user_connections (organization_id, user_id, role) values ($1, $2, 'MEMBER')
       on conflict do nothing`,
        [organizationId, bob.id],
      )
      .then(() =>
        owner.query(
          `update app_public.organization_user_connections set second_factor_due_at = now() - interval '1 day'
         where organization_id = $1 and user_id = $2`,
          [organizationId, bob.id],
        ),
      );
  const before = await explain(bob, leads.open.id);
  await isOverdue(summit.id);
  expect(await explain(bob, leads.open.id)).toEqual(before);
  const { rows } = await owner.query<{ id: string }>(
    "select organization_id as id from app_public.organization_user_connections where user_id = $1 and organization_id <> $2",
    [bob.id, summit.id],
  );
  await isOverdue(rows[0]!.id);
  expect((await explain(bob, leads.open.id)).reason).toBe("SECOND_FACTOR_MISSING");
});

test("masked fields and public records are reported", async () => {
  const { park, mia, sam, owen } = world;
  const metadata = { type: "Project", field: "metadata" };
  expect(await explain(sam, park.id, metadata)).toMatchObject({ reason: "PUBLIC", isFieldVisible: false });
  expect((await explain(owen, park.id, metadata)).isFieldVisible).toBe(true);
  expect((await explain(mia, park.id, { ...metadata, field: "title" })).isFieldVisible).toBe(true);
  expect((await explain(mia, park.id, { ...metadata, field: "completionDate" })).isFieldVisible).toBeNull();
  expect((await explain(mia, park.id, { type: "Project" })).isFieldVisible).toBeNull();
});

test("several explanations in one request are independent, and the viewer of the request is unchanged", async () => {
  const { max, mia, ada, leads } = world;
  const answer = await ada.get(
    `query ($organizationId: ID!, $max: ID!, $mia: ID!, $id: ID!) {
       first: explainAccess(organizationId: $organizationId, userId: $max, type: "Lead", id: $id) { isVisible }
       viewer { id }
       second: explainAccess(organizationId: $organizationId, userId: $mia, type: "Lead", id: $id) { isVisible }
       lead(id: $id) { id } }`,
    { organizationId: world.harbour.id, max: max.id, mia: mia.id, id: leads.maxs.id },
  );
  expect(answer).toEqual({
    first: { isVisible: true },
    viewer: { id: ada.id },
    second: { isVisible: false },
    lead: { id: leads.maxs.id },
  });
});

test("is limited to administrators, records that they see and people whom they know", async () => {
  const { max, mia, olga, anonymous, leads, summit } = world;
  const id = leads.maxs.id;
  expect(await refusal(mia, id, {}, max)).toBe("FORBIDDEN");
  expect(await refusal(mia, id, {}, olga)).toBe("FORBIDDEN");
  expect(await refusal(mia, id, {}, anonymous)).toBe("UNAUTHENTICATED");
  expect(await refusal(mia, leads.foreign.id)).toBe("NOT_FOUND");
  expect(await refusal(mia, leads.foreign.id, { organizationId: summit.id })).toBe("NOT_FOUND");
  expect(await refusal(olga, id)).toBe("NOT_FOUND");
  expect(await refusal(mia, id, { type: "Nothing" })).toBe("BAD_USER_INPUT");
  expect(await refusal(mia, id, { field: "nothing" })).toBe("BAD_USER_INPUT");
  const restricted = await programOf(world, world.ada, { name: "Reader", scopes: ["lead.read"] });
  expect(await refusal(mia, id, {}, restricted)).toBe("FORBIDDEN");
});
