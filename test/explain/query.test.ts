import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { anonymous, type Claims } from "../../src/database/claims.ts";
import { demoUser } from "../../src/demo/index.ts";
import { createExplainer, type Explainer } from "../../src/explain/query.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";

let database: TestDatabase;
let owner: Client;
let viewer: Claims;
let explainer: Explainer;

beforeAll(async () => {
  database = await createTestDatabase("demo");
  owner = new Client({ connectionString: database.ownerUrl });
  await owner.connect();
  const { rows } = await owner.query("select app_private.account_named($1) as id", [demoUser.email]);
  viewer = { userId: rows[0].id, readOnly: true };
  explainer = await createExplainer(database.authenticatorUrl);
});
afterAll(async () => {
  await explainer.end();
  await owner.end();
  await database.drop();
});

const explain: Explainer["explain"] = (...query) => explainer.explain(...query);

test("explains a query with its statements, their plans, and the deciding policies", async () => {
  const { statements, policies, answer } = await explain(
    viewer,
    "query ($first: Int!) { leads(first: $first) { name project { title } } }",
    { first: 3 },
  );
  expect(answer.errors).toBeUndefined();
  expect((answer.data as { leads: unknown[] }).leads).toHaveLength(3);
  expect(statements).toHaveLength(1);
  const [{ text, plan, relations }] = statements as [(typeof statements)[0]];
  expect(text).toMatch(/^select/);
  expect(plan[0]).toMatch(/actual time=[\d.]+\.\.[\d.]+ rows=/);
  expect(plan.at(-1)).toMatch(/^Execution Time: /);
  expect(relations).toEqual(expect.arrayContaining(["app_public.leads", "app_public.projects"]));
  const condition = policies.find(({ relation }) => relation === "app_public.leads")?.condition;
  expect(condition).toContain("lead.read");
});

test("a token sees less, and a visitor is refused, as by the API", async () => {
  const query = "{ leads { id } reservations { id } }";
  const whole = await explain(viewer, query);
  const restricted = await explain({ ...viewer, scopes: ["lead.read"] }, query);
  expect((whole.answer.data as { reservations: unknown[] }).reservations).not.toEqual([]);
  expect(restricted.answer.data).toMatchObject({ reservations: [] });
  const visitor = await explain(anonymous, query);
  expect(visitor.answer.errors?.[0]?.message).toMatch(/Sign in|token/);
});

test("explains what a visitor may read", async () => {
  const { statements, answer } = await explain(anonymous, "{ publicProjects { title } }");
  expect(answer.errors).toBeUndefined();
  expect(statements).not.toEqual([]);
});

test("a mutation is refused before anything is executed", async () => {
  const leads = async () => (await owner.query("select count(*) from app_public.leads")).rows[0].count;
  const before = await leads();
  await expect(
    explain(viewer, 'mutation { createLead(input: { projectId: "x", name: "Ada" }) { id } }'),
  ).rejects.toThrow("Only queries are explained: a mutation would be carried out.");
  expect(await leads()).toBe(before);
});

test("reports invalid documents and failures", async () => {
  await expect(explain(viewer, "{ leads {")).rejects.toThrow("Syntax Error");
  const { answer } = await explain(viewer, "{ leads { nothing } }");
  expect(answer.errors?.[0]?.message).toContain('Cannot query field "nothing"');
});
