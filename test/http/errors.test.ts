import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { SafeError } from "postgraphile/grafast";
import { GraphQLError } from "postgraphile/graphql";
import { CodedError } from "../../src/base/errors.ts";
import { faults, startServer, type TestServer, tokens } from "./server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => server[Symbol.asyncDispose]());
afterEach(() => {
  delete faults.resolver;
  delete faults.context;
});

const sqlError = (code: string, more: object = {}) =>
  Object.assign(new Error(`SECRET relation "app_private.secrets" ${code}`), { code, ...more });

/** The only error of a response, after checking its id. */
async function only(query: string, variables?: unknown) {
  const answer = await server.graphql(query, variables);
  expect(answer.json.errors).toHaveLength(1);
  const [error] = answer.json.errors;
  expect(error.extensions.requestId).toBe(answer.headers["x-request-id"]);
  expect(answer.text).not.toMatch(/SECRET|secrets|node_modules|at .*\.ts/);
  return { ...error, answer };
}

test("a coded error is returned with its message, path and extensions", async () => {
  faults.resolver = () =>
    new CodedError("CONFLICT", "There is one already.", { existingId: "1", field: "email" });
  const error = await only("{ renamed: fault }");
  expect(error).toMatchObject({ message: "There is one already.", path: ["renamed"] });
  expect(error.extensions).toMatchObject({ code: "CONFLICT", existingId: "1", field: "email" });
  expect(error.answer.status).toBe(200);
  expect(error.answer.json.data).toEqual({ renamed: null });
});

test("errors of the planner for the client are coded too", async () => {
  faults.resolver = () => new SafeError("Please simplify.", { [Symbol("timeout")]: true } as never);
  expect((await only("{ fault }")).extensions.code).toBe("LIMIT_EXCEEDED");
  faults.resolver = () => new SafeError("Invalid cursor.");
  expect((await only("{ fault }")).extensions.code).toBe("BAD_USER_INPUT");
  faults.resolver = () => new Error("No values were deleted in collection 'secrets' because …");
  expect((await only("{ fault }")).extensions.code).toBe("NOT_FOUND");
});

test("RATE_LIMITED has the time to retry, in the header too", async () => {
  faults.resolver = () => new CodedError("RATE_LIMITED", "Too many attempts.", { retryAfterSeconds: 61.2 });
  expect((await only("{ fault }")).answer.headers["retry-after"]).toBe("62");
});

test.each([
  ["an error", () => new Error("SECRET")],
  ["an error with a field of the driver", () => new TypeError("SECRET is not a function")],
  ["an unexpected GraphQLError", () => new GraphQLError("SECRET")],
  [
    "a GraphQLError around an error",
    () => new GraphQLError("SECRET", { originalError: new Error("SECRET") }),
  ],
  ["a RangeError", () => new RangeError("Maximum call stack size exceeded SECRET")],
  ["a syntax error", () => sqlError("42601")],
  ["a raise without one of our codes", () => sqlError("P0001")],
  ["PLAT0 without a detail", () => sqlError("PLAT0")],
  ["PLAT0 with an unknown code", () => sqlError("PLAT0", { detail: '{"code":"NEW"}' })],
  ["PLAT0 with a detail that is not an object", () => sqlError("PLAT0", { detail: "null" })],
  ["a string", () => "SECRET"],
])("%s is masked and logged under the request id", async (_name, fault) => {
  faults.resolver = fault;
  const error = await only("{ fault }");
  expect(error.extensions).toEqual({
    code: "INTERNAL",
    key: "somethingWentWrongOnOurSide",
    requestId: error.extensions.requestId,
  });
  expect(error.message).toMatch(/internal error/);
  expect(error.path).toEqual(["fault"]);
  const logged = server.log.find(
    (line) => line.requestId === error.extensions.requestId && line.event === "graphql.failed",
  );
  expect(JSON.stringify(logged)).toMatch(/SECRET/);
});

test.each([
  ["an unreachable database", "ECONNREFUSED"],
  ["a connection that ended", "08006"],
  ["a server that shuts down", "57P01"],
  ["too many connections", "53300"],
])("%s is masked, logged, and has the time to retry", async (_name, state) => {
  faults.resolver = () => sqlError(state);
  const error = await only("{ fault }");
  const { requestId } = error.extensions;
  expect(error.extensions).toEqual({
    code: "UNAVAILABLE",
    key: "theDatabaseCannotBeReachedOr",
    parameters: ["5"],
    retryAfterSeconds: 5,
    requestId,
  });
  expect(error.answer.headers["retry-after"]).toBe("5");
  expect(error.message).toMatch(/try again in 5 s/);
  const logged = server.log.find((line) => line.requestId === requestId && line.event === "graphql.failed");
  expect(JSON.stringify(logged)).toMatch(/SECRET/);
});

test("a null in a non-null field is an internal error", async () => {
  expect((await only("{ required }")).extensions.code).toBe("INTERNAL");
});

test.each([
  ["an error", () => new Error("connect SECRET"), 200, "INTERNAL"],
  ["a database that is down", () => sqlError("ECONNREFUSED"), 200, "UNAVAILABLE"],
  ["a coded error", () => new CodedError("UNAUTHENTICATED", "Sign in again."), 200, "UNAUTHENTICATED"],
])("%s of the context function is coded like any other", async (_name, fault, status, code) => {
  faults.context = fault;
  const error = await only("{ ok }");
  expect(error.extensions.code).toBe(code);
  expect(error.answer.status).toBe(status);
});

const raised = JSON.stringify({ code: "INVENTORY_UNAVAILABLE", claimedUntil: "2030-01-01T00:00:00Z" });
test("errors that the database raises for the client keep their extensions", async () => {
  faults.resolver = () => Object.assign(new Error("Lot 12 is held."), { code: "PLAT0", detail: raised });
  const error = await only("{ fault }");
  expect(error.message).toBe("Lot 12 is held.");
  expect(error.extensions).toMatchObject({
    code: "INVENTORY_UNAVAILABLE",
    claimedUntil: "2030-01-01T00:00:00Z",
  });
});

test.each([
  ["syntax", "{ ok ", undefined],
  ["an empty document", "", undefined],
  ["a comment only", "# nothing", undefined],
  ["an unknown field", "{ nothing }", undefined],
  ["a wrong literal", "{ leads(first: true) { id } }", "first"],
  ["an invalid field", 'mutation { createLead(input: { email: "a", age: "x" }) { id } }', "age"],
  [
    "a wrong nested member",
    'mutation { createLead(input: { email: "a", contact: { phone: 1 } }) { id } }',
    "contact.phone",
  ],
  ["a missing field", "mutation { createLead(input: { age: 1 }) { id } }", "email"],
  [
    "an unknown field of the input",
    'mutation { createLead(input: { email: "a", colour: 1 }) { id } }',
    "colour",
  ],
  ["a missing argument", "mutation { createLead { id } }", "input"],
  ["two operations without a choice", "query A { ok } query B { ok }", "operationName"],
])("%s is an error of the client", async (_name, query, field) => {
  const error = await only(query);
  expect(error.extensions).toMatchObject({ code: "BAD_USER_INPUT" });
  expect(error.extensions.field).toBe(field);
});

const create = "mutation ($input: LeadInput!) { createLead(input: $input) { id } }";
test.each([
  [{ email: 1 }, "email"],
  [{ email: "a", age: "old" }, "age"],
  [{ email: "a", contact: { phone: ["secretive; value"] } }, "contact.phone"],
  [{ age: 1 }, "email"],
  [{ email: "a", contact: {} }, "contact.phone"],
  [{ email: "a", password: "hunter2" }, "password"],
  [null, "input"],
  [undefined, "input"],
  ["text", "input"],
])("the variable %j is refused, with the field %p", async (input, field) => {
  const error = await only(create, { input });
  expect(error.extensions).toMatchObject({ code: "BAD_USER_INPUT", field });
  expect(error.answer.text).not.toMatch(/hunter2/);
});

test("in production an anonymous client learns nothing of the schema, a signed-in one does", async () => {
  await using production = await startServer({ production: true });
  const schema = "{ __schema { queryType { name } } }";
  const refused = await production.graphql(schema);
  expect(refused.json.errors[0].extensions.code).toBe("UNAUTHENTICATED");
  const signedIn = { authorization: "Bearer good-token" };
  expect((await production.graphql(schema, undefined, signedIn)).json.errors).toBeUndefined();
  expect((await production.graphql(schema)).json).not.toHaveProperty("data");
  expect((await production.graphql("{ viewr }")).text).not.toMatch(/Did you mean/);
  expect((await production.graphql("{ viewr }", undefined, signedIn)).text).toMatch(/Did you mean/);
  expect((await production.graphql("{ __typename }")).json.data).toEqual({ __typename: "Query" });
});

test("in production, validation errors for visitors contain only names that they have sent", async () => {
  await using closed = await startServer({ production: true });
  const textOf = async (query: string, headers?: Record<string, string>, variables?: unknown) => {
    const { json } = await closed.graphql(query, variables, headers);
    return json.errors[0].message as string;
  };
  const createLead = "mutation ($i: LeadInput!) { createLead(input: $i) { id } }";
  const cases: [string, unknown, string][] = [
    ["{ lead { id } }", undefined, 'Cannot query field "lead" on type "…".'],
    ["{ leads }", undefined, 'Field "leads" of type "…" must have a selection of subfields.'],
    ["{ leads(last: 1) { id } }", undefined, 'Unknown argument "last" on field "leads".'],
    [
      "mutation { createLead { id } }",
      undefined,
      'Field "createLead" argument "…" of type "…" is required, but it was not provided.',
    ],
    [
      createLead,
      { i: { emial: "a" } },
      'Variable "$i" has an invalid value: Field "…" of required type "…" was not provided.',
    ],
  ];
  for (const [query, variables, message] of cases)
    expect(await textOf(query, undefined, variables)).toBe(message);
  const tier = { i: { email: "a", tier: "GILD" } };
  const inLiteral = 'mutation { createLead(input: { email: "a", tier: GILD }) { id } }';
  for (const text of [await textOf(createLead, undefined, tier), await textOf(inLiteral)])
    expect(text).toMatch(/Value "(GILD|…)" does not exist in "…" enum\.$/);
  const signedIn = { authorization: `Bearer ${tokens.good}` };
  expect(await textOf("{ lead { id } }", signedIn)).toMatch(/on type "Query". Did you mean "leads"/);
  for (const text of [await textOf(createLead, signedIn, tier), await textOf(inLiteral, signedIn)])
    expect(text).toMatch(/does not exist in "Tier" enum\. Use one of GOLD, SILVER\.$/);
  // In development, errors are complete.
  await using open = await startServer();
  expect((await open.graphql("{ lead { id } }")).json.errors[0].message).toMatch(/Did you mean "leads"/);
});
