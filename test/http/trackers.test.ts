import { request } from "node:https";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { affiliate, startWorld, type World } from "../harness/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

interface Reply {
  status: number;
  location: string | undefined;
  type: string | undefined;
  body: Buffer;
}

/** The response at /t/<key> to a visitor's browser. */
const visit = (key: string, method = "GET"): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const url = new URL(`/t/${key}`, world.url);
    request(url, { method, rejectUnauthorized: false, agent: false }, (answer) => {
      const parts: Buffer[] = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("end", () =>
        resolve({
          status: answer.statusCode!,
          location: answer.headers.location,
          type: answer.headers["content-type"],
          body: Buffer.concat(parts),
        }),
      );
    })
      .on("error", reject)
      .end();
  });

const fields = "id key kind destinationUrl utm active hitCount lastHitAt leadCount version";
const create = async (input: Record<string, unknown>) =>
  (
    await world.owen.get(
      `mutation ($i: CreateTrackerInput!) { createTracker(input: $i) { ${fields} phoneNumber leadSource { code } } }`,
      { i: { projectId: world.project.id, name: "Spring mail", kind: "LINK", ...input } },
    )
  ).createTracker;
const read = async (id: string) =>
  (await world.owen.get(`query ($id: ID!) { tracker(id: $id) { ${fields} } }`, { id })).tracker;

test("a link counts and redirects, with its parameters", async () => {
  const made = await create({
    destinationUrl: "https://homes.example/spring?utm_source=kept#plans",
    utm: { utm_source: "mail", utm_campaign: "spring 26", nested: { left: "out" } },
  });
  expect(made).toMatchObject({ hitCount: 0, lastHitAt: null, leadCount: 0, active: true });
  expect(made.key).toMatch(/^[a-z2-9]{12}$/);
  const first = await visit(made.key);
  expect(first).toMatchObject({
    status: 302,
    location: `https://homes.example/spring?utm_source=kept&utm_campaign=spring+26&tracker=${made.key}#plans`,
  });
  expect((await visit(made.key, "HEAD")).status).toBe(302);
  await Promise.all(Array.from({ length: 20 }, () => visit(made.key)));
  const after = await read(made.id);
  expect(after).toMatchObject({ hitCount: 21, lastHitAt: expect.stringMatching(/Z$/), version: 1 });
});

test("a lead created with the key as its source counts for the tracker", async () => {
  const made = await create({});
  await world.owen.get(
    `mutation ($p: ID!, $s: String!) { createLead(input: { projectId: $p, name: "Lin", source: $s }) { id } }`,
    { p: world.project.id, s: made.key },
  );
  expect((await read(made.id)).leadCount).toBe(1);
});

test("a pixel is a picture, a tracker without destination redirects to the website of its project", async () => {
  const seen = await create({ kind: "PIXEL" });
  const picture = await visit(seen.key);
  expect(picture).toMatchObject({ status: 200, type: "image/gif" });
  expect(picture.body.subarray(0, 6).toString()).toBe("GIF89a");
  expect((await read(seen.id)).hitCount).toBe(1);
  const link = await create({});
  expect((await visit(link.key)).status).toBe(404);
  await world.owen.get(
    `mutation ($id: ID!) { updateProject(input: { id: $id, websiteUrl: "https://view.example" }) { id } }`,
    world.project,
  );
  expect((await visit(link.key)).location).toBe(`https://view.example/?tracker=${link.key}`);
});

test("inactive and unknown trackers are not found, and other methods are refused", async () => {
  const made = await create({ destinationUrl: "https://homes.example" });
  for (const key of ["aaaaaaaaaaaa", "x", "%00", "..%2f..%2fetc", made.key.toUpperCase(), "'; drop"])
    expect([400, 404]).toContain((await visit(encodeURI(key))).status);
  expect((await visit(made.key, "POST")).status).toBe(405);
  await world.owen.get(
    `mutation ($id: ID!) { updateTracker(input: { id: $id, active: false }) { active } }`,
    made,
  );
  expect((await visit(made.key)).status).toBe(404);
  await world.owen.get(
    `mutation ($id: ID!) { updateTracker(input: { id: $id, active: true }) { active } }`,
    made,
  );
  expect((await visit(made.key)).status).toBe(302);
  await world.owen.get(
    `mutation ($id: ID!) { deleteTracker(input: { id: $id }) { deleted project { id } } }`,
    made,
  );
  expect((await visit(made.key)).status).toBe(404);
  expect(await read(made.id)).toBeNull();
});

test("a tracker outlives its lead source", async () => {
  const { createLeadSource: source } = await world.owen.get(
    `mutation ($p: ID!) { createLeadSource(input: { projectId: $p, name: "Fair" }) { id } }`,
    { p: world.project.id },
  );
  const made = await create({ leadSourceId: source.id });
  expect(made.leadSource).toEqual({ code: "FAIR" });
  await world.owen.get(`mutation ($id: ID!) { deleteLeadSource(input: { id: $id }) { deleted } }`, source);
  const { updateTracker } = await world.owen.get(
    `mutation ($id: ID!) { updateTracker(input: { id: $id, name: "Post" }) { name leadSource { code } } }`,
    made,
  );
  expect(updateTracker).toEqual({ name: "Post", leadSource: null });
});

test("invalid trackers are refused", async () => {
  const refuse = (input: Record<string, unknown>) =>
    world.owen.refused(`mutation ($i: CreateTrackerInput!) { createTracker(input: $i) { id } }`, {
      i: { projectId: world.project.id, name: "A", kind: "LINK", ...input },
    });
  expect(await refuse({ destinationUrl: "javascript:alert(1)" })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "destinationUrl",
  });
  expect(await refuse({ utm: ["a"] })).toMatchObject({ code: "BAD_USER_INPUT", field: "utm" });
  expect(await refuse({ phoneNumber: "12" })).toMatchObject({ code: "BAD_USER_INPUT" });
  const { createProject: other } = await world.owen.get(
    `mutation ($o: ID!) { createProject(input: { organizationId: $o, title: "Quay" }) { id leadSources { id } } }`,
    { o: world.harbour.id },
  );
  expect(await refuse({ leadSourceId: other.leadSources[0].id })).toMatchObject({
    code: "NOT_FOUND",
    field: "leadSourceId",
  });
  expect((await create({ kind: "PHONE_NUMBER", phoneNumber: "416 555 0199" })).phoneNumber).toBe(
    "+14165550199",
  );
});

test("trackers require marketing permissions", async () => {
  await affiliate(world, world.project, world.summit, "SELLER");
  const list = `query ($id: ID!) { project(id: $id) { trackers { hitCount } } }`;
  expect((await world.max.get(list, world.project)).project.trackers).toEqual(expect.any(Array));
  expect((await world.olga.get(list, world.project)).project.trackers).toBeNull();
  const write = `mutation ($p: ID!) { createTracker(input: { projectId: $p, name: "A", kind: LINK }) { id } }`;
  const variables = { p: world.project.id };
  for (const person of [world.max, world.olga])
    expect(await person.refused(write, variables)).toMatchObject({
      code: "FORBIDDEN",
      permission: "marketing.manage",
    });
  expect(await world.anonymous.refused(write, variables)).toMatchObject({ code: "UNAUTHENTICATED" });
});
