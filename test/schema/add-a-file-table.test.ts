/**
 * Adding a kind of file in a migration provides uploads and all related operations: executes the SQL of
 * docs/adding-files.md.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { ownerUrl } from "../../src/database/roles.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { runGuide } from "../harness/guide.ts";
import { picture, upload } from "../harness/upload.ts";
import { affiliate, startWorld, type World } from "../harness/world.ts";

let world: World;
let database: TestDatabase;
let sourceId: string;
let file: string;

beforeAll(async () => {
  database = await createTestDatabase();
  const owner = new Client({ connectionString: ownerUrl(database.ownerUrl) });
  await owner.connect();
  await runGuide("docs/adding-files.md", owner);
  await owner.end();
  world = await startWorld(database);
  file = `data:;base64,${(await picture()).toString("base64")}`;
  const { createLeadSource } = await world.owen.get(
    `mutation ($id: ID!) { createLeadSource(input: { projectId: $id, name: "Fair" }) { id } }`,
    { id: world.project.id },
  );
  sourceId = createLeadSource.id;
});
afterAll(async () => {
  await world?.stop();
  await database?.drop();
});

const advertise = `mutation ($input: UploadAdvertisementInput!) { uploadAdvertisement(input: $input) {
  id url thumbnailUrl title alt sequence shownUntil filemime leadSource { id }
} }`;

test("a picture of another record than a project is uploaded both ways, changed, listed and deleted", async () => {
  const answer = await upload(
    world,
    world.ada,
    advertise,
    {
      input: { leadSourceId: sourceId, file: null, title: "Spring", alt: "A tree", shownUntil: "2026-05-31" },
    },
    { "variables.input.file": { bytes: await picture("webp") } },
  );
  expect(answer.errors).toBeUndefined();
  const first = answer.data.uploadAdvertisement;
  expect(first).toMatchObject({
    title: "Spring",
    alt: "A tree",
    sequence: 0,
    shownUntil: "2026-05-31",
    filemime: "image/webp",
    leadSource: { id: sourceId },
  });
  const { uploadAdvertisement: second } = await world.ada.get(advertise, {
    input: { leadSourceId: sourceId, file },
  });
  await world.ada.get(
    `mutation ($input: UpdateAdvertisementInput!) { updateAdvertisement(input: $input) { id } }`,
    { input: { id: first.id, sequence: 7 } },
  );
  const query = `query ($id: ID!) { leadSource(id: $id) { advertisements { id sequence } } }`;
  expect((await world.max.get(query, { id: sourceId })).leadSource.advertisements).toEqual([
    { id: second.id, sequence: 1 },
    { id: first.id, sequence: 7 },
  ]);
  expect(
    await world.ada.get(
      `mutation ($id: ID!) { deleteAdvertisement(input: { id: $id }) { id deleted leadSource { id } } }`,
      { id: second.id },
    ),
  ).toEqual({ deleteAdvertisement: { id: second.id, deleted: true, leadSource: { id: sourceId } } });
  const { rows } = await world.owner.query(
    "select project_id, organization_id from app_public.advertisements where id = $1",
    [first.id],
  );
  expect(rows).toEqual([{ project_id: world.project.id, organization_id: world.harbour.id }]);
});

test("requires the permission in its definition, and is visible with its record", async () => {
  const input = { leadSourceId: sourceId, file };
  const { uploadAdvertisement } = await world.ada.get(advertise, { input });
  expect(await world.max.refused(advertise, { input })).toMatchObject({
    code: "FORBIDDEN",
    permission: "marketing.manage",
  });
  expect((await world.olga.refused(advertise, { input })).code).toBe("NOT_FOUND");
  expect((await world.anonymous.refused(advertise, { input })).code).toBe("UNAUTHENTICATED");
  const byId = `query ($id: ID!) { advertisement(id: $id) { url } }`;
  expect((await world.max.get(byId, uploadAdvertisement)).advertisement).not.toBeNull();
  expect((await world.olga.get(byId, uploadAdvertisement)).advertisement).toBeNull();
  expect((await world.anonymous.get(byId, uploadAdvertisement)).advertisement).toBeNull();
});

test("documents are visible to the team, and public ones to all viewers of the record", async () => {
  const mutation = `mutation ($input: UploadProjectAwardInput!) { uploadProjectAward(input: $input) { id public } }`;
  const input = {
    projectId: world.project.id,
    file: `data:;base64,${Buffer.from("Best garden").toString("base64")}`,
  };
  const award = async (isPublic: boolean) =>
    (await world.ada.get(mutation, { input: { ...input, public: isPublic } })).uploadProjectAward;
  const [inside, open] = [await award(false), await award(true)];
  await affiliate(world, world.project, world.summit, "BUILDER");
  const query = `query ($id: ID!) { project(id: $id) { awards { id } } }`;
  const seen = async (person: World["max"]) =>
    (await person.get(query, { id: world.project.id })).project.awards
      .map((a: { id: string }) => a.id)
      .sort();
  expect(await seen(world.max)).toEqual([inside.id, open.id].sort());
  expect(await seen(world.olga)).toEqual([open.id]);
});

test("refuses writes in an archived project", async () => {
  const setStatus = (status: string) =>
    world.owen.get(`mutation ($input: UpdateProjectInput!) { updateProject(input: $input) { id } }`, {
      input: { id: world.project.id, status },
    });
  await setStatus("ARCHIVED");
  expect((await world.ada.refused(advertise, { input: { leadSourceId: sourceId, file } })).code).toBe(
    "PROJECT_ARCHIVED",
  );
  await setStatus("SELLING");
});
