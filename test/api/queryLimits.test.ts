import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { getIntrospectionQuery } from "postgraphile/graphql";
import { fullPages } from "../harness/fullPages.ts";
import { until } from "../harness/until.ts";
import { startWorld, type World } from "../harness/world.ts";
import { everythingOf, unlikeAnyOther } from "../hostile/documents.ts";

const UNITS = 600;

let world: World;
beforeAll(async () => {
  // With five connections, the share of a visitor would be one.
  world = await startWorld(undefined, { poolSize: 10 });
  await world.owner.query(
    `insert into app_public.units (organization_id, project_id, title, number, price, currency, description)
     select p.organization_id, p.id, 'Unit ' || n, n::text, 400000 + n, p.currency, rtrim(repeat('A fine home. ', 30))
     from app_public.projects p, generate_series(1, $2::int) n where p.id = $1`,
    [world.project.id, UNITS],
  );
  await world.owner.query(
    `with leads as (
       insert into app_public.leads (organization_id, project_id, name, first_name, last_name, email, origin)
       select p.organization_id, p.id, 'Lee Number ' || n, 'Lee', 'Number ' || n, 'lee' || n || '@example.com', 'MANUAL'
       from app_public.projects p, generate_series(1, $2::int) n where p.id = $1 returning *
     ), notes as (
       insert into app_public.lead_notes (organization_id, project_id, lead_id, text)
       select organization_id, project_id, id, rtrim(repeat('Called again. ', 30)) from leads, generate_series(1, 5)
     )
     insert into app_public.tasks (organization_id, project_id, lead_id, title)
     select organization_id, project_id, id, 'Call' from leads, generate_series(1, 3)`,
    [world.project.id, UNITS],
  );
});
afterAll(() => world.stop());

test.each(Object.keys(fullPages))("%s reach no limit, six at a time", async (title) => {
  const ask = () => world.owen.ask(fullPages[title]!, { project: world.project.id });
  for (const { errors, data, extensions } of await Promise.all(Array.from({ length: 6 }, ask))) {
    expect(errors).toBeUndefined();
    expect(JSON.stringify(data).length).toBeGreaterThan(10);
    const { requested, limit, planning, bytes } = extensions.cost;
    expect(requested).toBeLessThan(limit * 0.75);
    expect(planning.requested).toBeLessThan(planning.limit * 0.75);
    expect(bytes.read).toBeLessThan(bytes.limit * 0.75);
  }
});

test("a document that takes long to plan is refused and not planned; plans are cached by weight and removed with their documents", async () => {
  const project = `{ publicProjects(first: 1) { ${everythingOf("Project", 1).join(" ")} } }`;
  const wide = project.replace(
    /}$/,
    `recentlySoldUnits(first: 1) { ${everythingOf("Unit", 1).join(" ")} } }`,
  );
  for (let n = 0; n < 5; n += 1)
    expect(await world.anonymous.refused(unlikeAnyOther(wide))).toMatchObject({
      code: "LIMIT_EXCEEDED",
      limit: 1_000,
      part: "publicProjects",
    });
  for (let n = 0; n < 6; n += 1) await world.anonymous.ask(unlikeAnyOther(project));
  const kept = await world.documentCache();
  expect(kept.bytes).toBeLessThanOrEqual(64_000_000);
  expect(kept.plansAreForgotten).toBe(true);
});

test("variables that change the plan produce a bounded number of plans, evicted in turn", async () => {
  const query = `query (${["a", "b", "c", "d", "e"].map((name) => `$${name}: Boolean!`).join(" ")}) {
    publicProjects(first: 1) { id @include(if: $a) title @include(if: $b) slug @include(if: $c) city @include(if: $d) status @include(if: $e) } }`;
  const before = await world.documentCache();
  for (let bits = 0; bits < 32; bits += 1) {
    const variables = Object.fromEntries(
      ["a", "b", "c", "d", "e"].map((name, n) => [name, Boolean(bits & (1 << n))]),
    );
    await world.anonymous.get(query, variables);
  }
  const after = await world.documentCache();
  expect(after.documents - before.documents).toBeLessThanOrEqual(1);
  expect(after.bytes - before.bytes).toBeLessThan(2_000_000);
});

test("a response that repeats values is refused by its own size, at any level", async () => {
  const alike = (count: number, text: string) =>
    Array.from({ length: count }, (_, n) => `a${n}: ${text}`).join(" ");
  const wide = `{ units(first: 500) { ${alike(30, "description")} } }`;
  const refused = await world.owen.refused(wide);
  expect(refused).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 3_000_000, part: "units" });
  expect(refused.message).toContain("Ask for fewer records with first");
  const nested = `{ units(first: 20) { project { ${alike(10, `units { ${alike(15, "description")} }`)} } } }`;
  expect(await world.owen.refused(nested)).toMatchObject({ code: "LIMIT_EXCEEDED" });
});

test("a mutation whose response is too large reports that it was executed", async () => {
  const answer = await world.owen.ask(
    `mutation ($input: UpdateProjectInput!) { updateProject(input: $input) { id ${Array.from({ length: 30 }, (_, n) => `a${n}: units(first: 500, filter: { query: "${n > 30 ? n : "Unit"}" }) { description }`).join(" ")} } }`,
    { input: { id: world.project.id, overview: "Changed" } },
  );
  const [error] = answer.errors!;
  expect(error!.extensions).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 3_000_000 });
  expect((await world.owen.get(`{ project(id: "${world.project.id}") { overview } }`)).project.overview).toBe(
    "Changed",
  );
});

test("more rows than the limit are not read to the end", async () => {
  const query = "{ units(first: 1000) { id description project { id units { id description } } } }";
  expect(await world.owen.refused(query)).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 3_000_000 });
  expect((await world.owen.get("{ units(first: 1) { id } }")).units).toHaveLength(1);
});

test("introspection of the whole schema is cached after the first time", async () => {
  const first = await world.owen.ask(getIntrospectionQuery());
  expect(first.errors).toBeUndefined();
  const { bytes } = await world.documentCache();
  const again = await world.owen.ask(getIntrospectionQuery());
  expect(again.data).toEqual(first.data);
  expect((await world.documentCache()).bytes).toBe(bytes);
});

test("a visitor with blocked statements uses at most three connections; other viewers are served", async () => {
  const lock = await world.owner.connect();
  try {
    await lock.query("begin; lock table app_public.projects in access exclusive mode");
    const asks = Array.from({ length: 24 }, () => world.anonymous.get("{ publicProjects(first: 1) { id } }"));
    const hanging = async (): Promise<number> => {
      const { rows } = await world.owner.query(
        // Meanwhile, look-ups by the API for other viewers time out by themselves.
        `select count(*)::int as n from pg_locks l join pg_stat_activity a using (pid)
         where not l.granted and l.relation = 'app_public.projects'::regclass and a.query not like '%access_of%'`,
      );
      return rows[0].n;
    };
    await until(hanging, (count) => count === 3);
    // Other viewers are authenticated, and their queries answered.
    for (let n = 0; n < 3; n += 1)
      expect((await world.owen.get("{ viewer { id } }")).viewer.id).toBe(world.owen.id);
    expect(await hanging()).toBe(3);
    await lock.query("rollback");
    await Promise.all(asks);
  } finally {
    lock.release();
  }
});
