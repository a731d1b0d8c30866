/** The format of GraphQL requests over HTTP: the type of each property, and the error if it has another one. */
import { expect, test } from "@jest/globals";
import { graphqlRequest, parseGraphQLRequest } from "../../src/http/graphqlRequest.ts";
import { beginRequest, claimsOf, findRequestState, requestState } from "../../src/http/requestState.ts";
import { LARGE_BODY } from "../../src/admission/semaphores.ts";
import { eventLoop } from "../../src/admission/eventLoop.ts";
import { partyOf } from "../../src/admission/party.ts";

const bytesOf = (body: unknown) => Buffer.from(typeof body === "string" ? body : JSON.stringify(body));

/** The refusal of a body, as returned to the client. */
function refusal(body: unknown): unknown {
  try {
    parseGraphQLRequest(bytesOf(body));
  } catch (error) {
    const { code, message, extensions } = error as { code: string; message: string; extensions: object };
    return [code, message, extensions];
  }
  return undefined;
}

const query = "{ ok }";
const noObject = "The body must be a JSON object with the field query.";
const noQuery = "query must be a string, the GraphQL document.";
const noVariables = "variables must be an object.";
const noExtensions = "extensions must be an object.";
const nul = "Text must not contain NUL characters.";
test.each<[unknown, string, string | undefined]>([
  ["{", "The body is not valid JSON in UTF-8.", undefined],
  [[{ query }], "Send one operation per request; arrays of operations are not accepted.", undefined],
  ["null", noObject, undefined],
  ["1", noObject, undefined],
  ['"{ ok }"', noObject, undefined],
  [{}, noQuery, "query"],
  [{ query: null }, noQuery, "query"],
  [{ query, variables: "{}" }, noVariables, "variables"],
  [{ query, variables: [] }, noVariables, "variables"],
  [{ query, variables: 0 }, noVariables, "variables"],
  [{ query, operationName: 1 }, "operationName must be a string.", "operationName"],
  [{ query, operationName: {} }, "operationName must be a string.", "operationName"],
  [{ query, extensions: "x" }, noExtensions, "extensions"],
  [{ query, extensions: [] }, noExtensions, "extensions"],
  [{ query, extensions: false }, noExtensions, "extensions"],
  [{ documentId: 1 }, "documentId must be a string.", "documentId"],
  [{ query, documentId: "a" }, "Send either query or documentId, not both.", "documentId"],
  [{ query: "{ ok\0 }" }, nul, "query"],
  [{ query, operationName: "a\0" }, nul, "operationName"],
  [{ query, variables: { a: ["\0"] } }, nul, "variables.a.0"],
  [{ query, extensions: { a: { "b\0": 1 } } }, nul, "extensions.a"],
])("the body %j is refused: %s", (body, message, field) => {
  expect(refusal(body)).toStrictEqual(["BAD_USER_INPUT", message, field === undefined ? {} : { field }]);
});

test("fields that are omitted or null are accepted, and unknown ones ignored", () => {
  expect(parseGraphQLRequest(bytesOf({ query }))).toStrictEqual({
    query,
    variables: undefined,
    operationName: undefined,
    extensions: undefined,
  });
  const empty = { query: "", variables: null, operationName: null, extensions: null };
  expect(parseGraphQLRequest(bytesOf({ ...empty, more: "\0" }))).toStrictEqual(empty);
  const full = { query, variables: { a: [null] }, operationName: "A", extensions: { b: {} } };
  expect(parseGraphQLRequest(bytesOf(full))).toStrictEqual(full);
});

/** A request with a body that the previous middlewares have read. */
function arrived(body: unknown, claims?: { userId: string | null }) {
  const request = { body, ip: "192.0.2.7" } as any;
  const state = { claims, operationName: undefined } as any;
  beginRequest(request, state);
  return { request, state };
}
const handle = (request: unknown, next = () => {}) => graphqlRequest()(request as never, {} as never, next);

test("the checked request replaces the body, and the log contains a limited length of the operation name", async () => {
  const { request, state } = arrived(
    bytesOf({ query, variables: { a: 1 }, operationName: "a".repeat(129), more: 1 }),
  );
  let passed = 0;
  await handle(request, () => void passed++);
  expect(request.body).toEqual({ query, variables: { a: 1 }, operationName: "a".repeat(129) });
  expect([passed, state.operationName]).toEqual([1, "a".repeat(128)]);
  expect(state.bodyBytes).toBe(
    bytesOf({ query, variables: { a: 1 }, operationName: "a".repeat(129), more: 1 }).length,
  );
  const unnamed = arrived(bytesOf({ query }));
  await handle(unnamed.request);
  expect(unnamed.state.operationName).toBeUndefined();
});

test("a request without a body is refused like one with invalid JSON", async () => {
  for (const body of [undefined, {}, "{}"]) {
    const { request, state } = arrived(body);
    let passed = 0;
    await expect((async () => handle(request, () => void passed++))()).rejects.toMatchObject({
      code: "BAD_USER_INPUT",
      message: "The body is not valid JSON in UTF-8.",
    });
    expect([passed, request.body, state.operationName]).toEqual([0, body, undefined]);
  }
});

test("a large body is parsed in the turn of its viewer, or of its address for visitors", async () => {
  const large = bytesOf({ query, variables: { a: "a".repeat(LARGE_BODY) } });
  const order: string[] = [];
  const read = (name: string, claims?: { userId: string | null }) =>
    handle(arrived(large, claims).request, () => void order.push(name));
  const busy = eventLoop.ready(partyOf(null, "192.0.2.1"));
  // Parties take turns: the first of each comes before the second of any.
  const all = [
    read("user 1", { userId: "user-1" }),
    read("user 1 again", { userId: "user-1" }),
    read("user 2", { userId: "user-2" }),
    read("stranger", { userId: null }),
    read("stranger again"),
  ];
  const small = handle(arrived(bytesOf({ query })).request, () => void order.push("small"));
  await Promise.all([busy, small, ...all]);
  expect(order[0]).toBe("small");
  expect(order.slice(1, 4).toSorted()).toEqual(["stranger", "user 1", "user 2"]);
  expect(order.slice(4).toSorted()).toEqual(["stranger again", "user 1 again"]);
});

test("the state of a request is separate, and its claims are those of authentication", () => {
  const { request, state } = arrived(undefined);
  expect(claimsOf(request)).toBeUndefined();
  state.claims = { userId: "user-1" };
  expect(claimsOf(request)).toEqual({ userId: "user-1" });
  expect([requestState(request), findRequestState(request)]).toEqual([state, state]);
  const other = {} as never;
  expect([claimsOf(other), findRequestState(other), findRequestState(undefined)]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(() => requestState(other)).toThrow("The request id middleware has to come first.");
});
