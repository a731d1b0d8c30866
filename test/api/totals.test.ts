/**
 * Counts and groups of connections equal those of the lists, for every table and viewer, although they are read in
 * different ways.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { buildClientSchema, getIntrospectionQuery, type GraphQLSchema } from "postgraphile/graphql";
import { demoUser } from "../../src/demo/people.ts";
import { startApi, type Api, type Person } from "../harness/api.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";

let database: TestDatabase;
let api: Api;
let people: Map<string, Person>;
let schema: GraphQLSchema;

beforeAll(async () => {
  database = await createTestDatabase("demo");
  api = await startApi(database);
  const { rows } = await api.owner.query<{ email: string; kind: string }>(
    `select distinct on (kind) i.email, kind from app_public.users u join app_hidden.user_identities i on i.user_id = u.id
     join app_private.user_passwords p on p.user_id = u.id, lateral (
       select 'member ' || m.role as kind from app_public.organization_user_connections m where m.user_id = u.id
       union all select 'affiliate ' || a.role from app_public.organization_user_connections m
         join app_public.project_organizations a on a.organization_id = m.organization_id and a.role <> 'OWNER' where m.user_id = u.id
       union all select 'buyer' from app_public.buyers b where b.user_id = u.id) k
     order by kind, i.email`,
  );
  people = new Map();
  for (const { email, kind } of rows) {
    const { login } = await api.anonymous.get(
      "mutation ($input: LoginInput!) { login(input: $input) { token } }",
      { input: { username: email, password: demoUser.password } },
    );
    people.set(kind, api.person(login.token));
  }
  schema = buildClientSchema(await [...people.values()][0]!.get(getIntrospectionQuery()));
});
afterAll(async () => {
  await api.stop();
  await database.drop();
});

test("a connection has the count of its list", async () => {
  const fields = schema.getQueryType()!.getFields();
  const lists = Object.keys(fields).filter(
    (name) =>
      fields[name]!.args.every(({ type }) => !`${type}`.endsWith("!")) &&
      fields[name]!.args.some((argument) => argument.name === "first") &&
      fields[`${name}Connection`]?.args.every(({ type }) => !`${type}`.endsWith("!")),
  );
  expect(lists.length).toBeGreaterThan(10);
  const differ: Record<string, unknown> = {};
  let counted = 0;
  for (const [kind, person] of people)
    for (const name of lists) {
      const { data, errors } = await person.ask(
        `{ list: ${name}(first: 1000) { __typename } connection: ${name}Connection(first: 1) { totalCount } }`,
      );
      const [list, total] = [data?.list?.length, data?.connection?.totalCount];
      counted += list ?? 0;
      if (errors || list !== total) differ[`${kind} ${name}`] = errors?.[0]!.message ?? { list, total };
    }
  expect(differ).toEqual({});
  expect(counted).toBeGreaterThan(500);
});

test("groups count each record once, even by id", async () => {
  for (const person of people.values()) {
    const { leadsConnection } = await person.get(
      "{ leadsConnection(first: 1) { totalCount groupedAggregates(groupBy: [STATUS]) { keys distinctCount { id } } aggregates { distinctCount { id status } } } }",
    );
    const { totalCount, groupedAggregates: groups, aggregates } = leadsConnection;
    const sum = groups.reduce((all: number, { distinctCount }: any) => all + Number(distinctCount.id), 0);
    expect(sum).toBe(totalCount);
    expect(aggregates.distinctCount).toEqual({ id: `${totalCount}`, status: `${groups.length}` });
  }
});

test("only the counted columns are read", async () => {
  const [person] = people.values();
  const read = async (selection: string) => {
    const { texts } = await api.statements(() => person!.get(`{ leadsConnection { ${selection} } }`));
    return new Set(
      texts.flatMap((text) =>
        [...text.matchAll(/ t\.("[^ ]*"(?:, t\."\w+")*) from /g)].map(([, columns]) => columns),
      ),
    );
  };
  expect(await read("totalCount")).toEqual(new Set(['"organization_id"']));
  expect(await read("groupedAggregates(groupBy: [STATUS]) { keys distinctCount { sourceId } }")).toEqual(
    new Set(['"source_id", t."status", t."organization_id"']),
  );
});
