/** When the plan of a query gets a compiled form: with tables of PostgreSQL, and a client that has scripted rows. */
import { makeRegistryBuilder, PgExecutor, recordCodec, TYPES } from "postgraphile/@dataplan/pg";
import { context, lambda, makeGrafastSchema, object } from "postgraphile/grafast";
import { sql } from "postgraphile/pg-sql2";
import { afterEach, expect, test } from "@jest/globals";
import { CodedError } from "../../src/base/errors.ts";
import {
  cachedDocument,
  documentCache,
  documentLookups,
  findCompiled,
} from "../../src/http/plugins/QueryLimitsPlugin.ts";
import { findRequestState } from "../../src/http/requestState.ts";
import { transportPreset } from "../../src/http/transportPreset.ts";
import { startServer, tokens } from "./server.ts";

const closing: (() => PromiseLike<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const typeDefs = /* GraphQL */ `
  type Query {
    leads(first: Int): [Lead!]
    few(first: Int = 1): [Lead!]
    fault: String
    viewerId: String
  }
  type Mutation {
    leads: [Lead!]
  }
  type Lead {
    id: ID!
    name: String
    age: Int
  }
`;

// oxlint-disable typescript/no-explicit-any -- the library infers these types from its own schema builder only
function newSchema() {
  const of = (name: string) => context().get(name as never);
  const executor = new PgExecutor({
    name: "main",
    context: () => object({ pgSettings: of("pgSettings"), withPgClient: of("withPgClient") }) as never,
  });
  const codec = recordCodec({
    name: "lead",
    identifier: sql.identifier("leads"),
    executor,
    attributes: {
      id: { codec: TYPES.text, notNull: true },
      name: { codec: TYPES.text },
      age: { codec: TYPES.int },
    },
  } as never) as any;
  const registry = makeRegistryBuilder()
    .addExecutor(executor as never)
    .addCodec(codec)
    .addResource({
      name: "leads",
      identifier: "leads",
      executor,
      codec,
      from: codec.sqlType,
      uniques: [{ attributes: ["id"], isPrimary: true }],
    } as never)
    .build() as any;
  const leads = () => registry.pgResources.leads.find();
  return makeGrafastSchema({
    typeDefs,
    enableDeferStream: false,
    objects: {
      Query: {
        plans: {
          leads,
          few: leads,
          fault: { resolve: () => Promise.reject(new CodedError("FORBIDDEN", "No.")) },
          viewerId: () => lambda(context().get("viewerId" as never), (id: unknown) => id),
        } as never,
      },
      Mutation: { plans: { leads } as never },
      Lead: {
        plans: {
          id: ($lead: any) => $lead.get("id"),
          name: ($lead: any) => $lead.get("name"),
          age: ($lead: any) => $lead.get("age"),
        } as never,
      },
    },
  });
}
// oxlint-enable typescript/no-explicit-any

/** A service whose statements have these rows. */
async function start(rows: string[][], plat: GraphileConfig.PlatOptions = {}) {
  const schema = newSchema();
  const preset: GraphileConfig.Preset = {
    extends: [transportPreset],
    plat,
    grafast: {
      context: ({ expressv4 }: Partial<Grafast.RequestContext>) => {
        const state = findRequestState(expressv4?.req)!;
        const client = {
          query: async (statement: { text: string }) => {
            state.work!.recording?.ran(statement, rows);
            return { rows, rowCount: rows.length };
          },
          withTransaction: (callback: (inner: object) => unknown) => callback(client),
        };
        return {
          isSignedIn: state.claims?.userId != null,
          viewerId: state.claims?.userId,
          pgSettings: {},
          withPgClient: async (_settings: unknown, callback: (inner: object) => unknown) => callback(client),
        } as never;
      },
    },
  };
  const server = await startServer({
    pgl: { createServ: (grafserv) => grafserv({ schema, preset }) as never },
  });
  closing.push(() => server[Symbol.asyncDispose]());
  const find = (query: string, isSignedIn = false, variables?: Record<string, unknown>) =>
    findCompiled(schema, { query, operationName: undefined, variables }, isSignedIn);
  return {
    schema,
    find,
    /** The response, and the number of compiled forms that it has added. */
    async ask(query: string, variables?: object, headers?: Record<string, string>) {
      const before = documentLookups.compiled;
      const { json } = await server.graphql(query, variables, headers);
      return { json, compiled: documentLookups.compiled - before };
    },
  };
}

const query = "{ leads { id name } }";
const ann = [["1", "Ann"]];
const atOnce = { compileAtOnce: true };
const signedIn = { authorization: `Bearer ${tokens.good}` };

test("a query is compiled once two executions of its plan agree, for viewers or for visitors", async () => {
  const { ask, find, schema } = await start(ann, atOnce);
  const first = await ask(query);
  expect(first.json.data).toEqual({ leads: [{ id: "1", name: "Ann" }] });
  expect([first.compiled, find(query)]).toEqual([0, undefined]);
  const { bytes } = documentCache(schema);
  const { hits } = documentLookups;
  expect((await ask(query)).compiled).toBe(1);
  // The document weighs more by the compiled form.
  expect(documentCache(schema).bytes).toBeGreaterThan(bytes + 6_000);
  const found = find(query)!;
  const { cost } = first.json.extensions;
  expect(found).toMatchObject({
    cost: cost.requested,
    planning: cost.planning.requested,
    copies: 1,
    part: ["leads"],
    pages: [],
    statements: [{ text: expect.stringContaining('from "leads"') }],
  });
  // Of this, one when the document was found, and one when its compiled form was.
  expect(documentLookups.hits).toBe(hits + 2);
  expect(find(query, true)).toBeUndefined();
  expect((await ask(query)).compiled).toBe(0);
  expect([(await ask(query, {}, signedIn)).compiled, (await ask(query, {}, signedIn)).compiled]).toEqual([
    0, 1,
  ]);
  expect(find(query, true)).toBeDefined();
});

test("unless that is configured, the first execution, which makes the plan, is not compared", async () => {
  const { ask } = await start(ann);
  const compiled: number[] = [];
  for (let n = 0; n < 4; n += 1) compiled.push((await ask(query)).compiled);
  expect(compiled).toEqual([0, 0, 1, 0]);
});

test.each([
  ["a mutation", "mutation { leads { id } }"],
  ["an operation with an error", "{ leads { id } fault }"],
  ["one that reads the viewer's id", "{ leads { id } viewerId }"],
  ["one without statements", "{ __typename }"],
])("%s is never compiled", async (_name, document) => {
  const { ask, find } = await start(ann, atOnce);
  for (let n = 0; n < 3; n += 1) {
    const { json, compiled } = await ask(document);
    expect(json).toHaveProperty("data");
    expect(compiled).toBe(0);
  }
  expect(find(document)).toBeUndefined();
});

test("a query of a cost of 5,000 or more is not compiled", async () => {
  const { ask } = await start([["1", "Ann", "42"]], atOnce);
  const of = async (first: number) => {
    const document = `{ leads(first: ${first}) { id name age } }`;
    const { json } = await ask(document);
    return [json.extensions.cost.requested, (await ask(document)).compiled];
  };
  expect([await of(999), await of(1_000)]).toEqual([
    [4_995, 1],
    [5_000, 0],
  ]);
});

test("variables that decide about the work have compiled forms of their own", async () => {
  const { ask, find } = await start(ann, atOnce);
  const document = "query ($all: Boolean!) { leads { id name @include(if: $all) } }";
  for (const all of [true, true, false]) await ask(document, { all });
  expect([find(document, false, { all: true }), find(document, false, { all: false })]).toEqual([
    expect.anything(),
    undefined,
  ]);
  expect((await ask(document, { all: false })).compiled).toBe(1);
});

test("a compiled form knows the lists that are cut at their default size", async () => {
  const { ask, find } = await start(ann, atOnce);
  const document = "{ few { id } }";
  const { json } = await ask(document);
  await ask(document);
  expect(json.extensions.fullPages).toEqual([{ path: ["few"], first: 1 }]);
  expect(find(document)?.pages).toEqual([{ keys: ["few"], first: 1 }]);
});

test("a query that is not in the cache has no compiled form", async () => {
  const { ask, find, schema } = await start(ann, atOnce);
  const { hits } = documentLookups;
  expect(find(query)).toBeUndefined();
  await ask(query);
  expect(cachedDocument(schema, query)!.compiled("")).toBeDefined();
  expect(find("{ few { id } }")).toBeUndefined();
  expect(documentLookups.hits).toBe(hits);
});
