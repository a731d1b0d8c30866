/** Parts of error handling; errors.test.ts tests whole requests. */
import { describe, expect, test } from "@jest/globals";
import { grafast, makeGrafastSchema, SafeError } from "postgraphile/grafast";
import {
  buildSchema,
  GraphQLError,
  Kind,
  parse,
  validate,
  type ExecutionArgs,
  type ExecutionResult,
} from "postgraphile/graphql";
import { CodedError, internalError, internalMessage } from "../../src/base/errors.ts";
import { executionError, validationError, withoutNames } from "../../src/http/graphqlErrors.ts";
import { inputMember } from "../../src/http/inputMember.ts";
import { literalPath } from "../../src/http/literalPath.ts";
import type { RequestState } from "../../src/http/requestState.ts";
import { retryAfter } from "../../src/http/retryAfter.ts";
import { maskError } from "../../src/http/plugins/CodedErrorsPlugin.ts";
import { userAgentOf } from "../../src/http/requestFacts.ts";
import { describeForLog, failureForLog, toCodedError } from "../../src/http/toCodedError.ts";
import { connectionLimits, countByAddress } from "../../src/http/connectionLimits.ts";

const schema = buildSchema(`
  enum Status { NEW OLD }
  scalar EmailAddress
  input ContactInput { email: EmailAddress, phone: String! }
  input LeadInput { email: EmailAddress, other: EmailAddress, age: Int, status: Status, contact: ContactInput, contacts: [ContactInput] }
  type Query { ok(a: Int, b: [Int], status: Status): Boolean, leads(first: Int!): Boolean }
  type Mutation { create(input: LeadInput!): Boolean, add(email: EmailAddress, input: LeadInput): Boolean }
`);

/** A request with the properties that errors use, and what it logged. */
function request(more: Partial<RequestState> = {}) {
  const logged: unknown[][] = [];
  const state = {
    id: "r1",
    schemaIsOpen: true,
    errorCodes: new Set<string>(),
    constraintMessages: new Map(),
    claims: { userId: null },
    log: { error: (...given: unknown[]) => void logged.push(given) },
    ...more,
  } as unknown as RequestState;
  return { state, logged };
}
const refusals = (query: string) => validate(schema, parse(query));

describe("validation", () => {
  test.each([
    ["{ ok(a: true) }", "a"],
    ["{ ok(b: [1, true]) }", "b"],
    ["{ leads }", "first"],
    ["mutation { create }", "input"],
    ["mutation { create(input: { age: true }) }", "age"],
    ["mutation { create(input: { contact: { phone: 1 } }) }", "contact.phone"],
    ["mutation { create(input: { contact: {} }) }", "contact.phone"],
    ["mutation { create(input: { contacts: [{ phone: 1 }] }) }", "contacts.phone"],
    ["mutation { create(input: { colour: 1 }) }", "colour"],
    ["mutation { create(input: { contact: null, age: $x }) }", "age"],
    ["{ nothing }", undefined],
    ["{ ok @skip }", "if"],
    ["{ ok @skip(if: 1) }", "if"],
  ])("%s refers to %s", (query, field) => {
    const { state } = request();
    const reported = refusals(query).map((error) => validationError(error, state).extensions);
    expect(reported[0]).toEqual({ code: "BAD_USER_INPUT", requestId: "r1", ...(field && { field }) });
    expect([...state.errorCodes]).toEqual(["BAD_USER_INPUT"]);
  });

  test("an invalid enumeration value is reported with the valid ones, to viewers who may read the schema", () => {
    const [error] = refusals("{ ok(status: NWE) }");
    const reported = validationError(error!, request().state, schema);
    expect(reported.message).toBe('Value "NWE" does not exist in "Status" enum. Use one of NEW, OLD.');
    expect(reported.extensions).toEqual({
      code: "BAD_USER_INPUT",
      field: "status",
      allowed: ["NEW", "OLD"],
      requestId: "r1",
    });
    expect(validationError(error!, undefined, schema).extensions.allowed).toEqual(["NEW", "OLD"]);
    expect(
      validationError(error!, request({ schemaIsOpen: false }).state, schema).extensions.allowed,
    ).toBeUndefined();
    expect(validationError(error!, request().state).extensions.allowed).toBeUndefined();
    const [text] = refusals('{ ok(status: "NEW") }');
    expect(validationError(text!, request().state, schema).message).toBe(
      'Enum "Status" cannot represent non-enum value: "NEW". Use one of NEW, OLD.',
    );
    const [number] = refusals("{ ok(a: true) }");
    expect(validationError(number!, request().state, schema).message).toBe(
      "Int cannot represent non-integer value: true",
    );
  });

  test("an error with one of our codes keeps it, and gets its field", () => {
    const [{ nodes }] = refusals("{ ok(a: true) }") as [GraphQLError];
    const limit = new GraphQLError("Too deep.", { extensions: { code: "LIMIT_EXCEEDED", limit: 12 } });
    expect(validationError(limit, request().state).extensions).toEqual({
      code: "LIMIT_EXCEEDED",
      limit: 12,
      requestId: "r1",
    });
    const bad = new GraphQLError("Not so.", { nodes, extensions: { code: "BAD_USER_INPUT" } });
    expect(validationError(bad, request().state).extensions).toEqual({
      code: "BAD_USER_INPUT",
      field: "a",
      requestId: "r1",
    });
    const placed = new GraphQLError("Not so.", { nodes, extensions: { code: "BAD_USER_INPUT", field: "x" } });
    expect(validationError(placed, request().state).extensions.field).toBe("x");
  });

  test("an aborted comparison is a limit; too many errors are the client's fault; everything else is internal", () => {
    const { state, logged } = request();
    const aborted = validationError(new GraphQLError("Validation aborted."), state);
    expect([aborted.message, aborted.extensions]).toEqual([
      "The operation selects the same fields too many times.",
      { code: "LIMIT_EXCEEDED", limit: 2_000, requestId: "r1" },
    ]);
    const many = new GraphQLError("Too many validation errors, error limit reached. Validation aborted.");
    expect(validationError(many, state).extensions.code).toBe("BAD_USER_INPUT");
    expect(logged).toEqual([]);
    expect(validationError(new GraphQLError("x Too many validation errors"), state).extensions.code).toBe(
      "INTERNAL",
    );
    expect(validationError(new TypeError("ours") as never, state).extensions.code).toBe("INTERNAL");
    expect(logged.at(-1)).toEqual([
      {
        event: "graphql.failed",
        err: expect.objectContaining({ name: "TypeError", message: "ours" }),
        path: undefined,
      },
      "The operation failed.",
    ]);
  });
});

describe("values of variables", () => {
  const document = parse("mutation ($i: LeadInput!) { create(input: $i) }");
  const [node] = (document.definitions[0] as any).variableDefinitions;
  const refused = (message: string, more: Partial<RequestState> = {}) =>
    executionError(new GraphQLError(message, { nodes: [node] }), request(more).state, undefined, {
      schema,
    } as ExecutionArgs);

  test.each([
    ['Variable "$i" of required type "LeadInput!" was not provided.', "i", undefined],
    ['Variable "$i" of non-null type "LeadInput!" must not be null.', "i", undefined],
    [
      'Variable "$i" got invalid value "hunter2"; Expected type "LeadInput" to be an object.',
      "i",
      'Variable "$i" has an invalid value: Expected type "LeadInput" to be an object.',
    ],
    [
      'Variable "$i" got invalid value { password: "a; b" } at "i.contact"; Field "phone" of required type "String!" was not provided.',
      "contact.phone",
      'Variable "$i.contact" has an invalid value: Field "phone" of required type "String!" was not provided.',
    ],
    [
      'Variable "$i" got invalid value "x" at "i.contacts[0].phone"; String cannot represent a non string value: 1',
      "contacts[0].phone",
      'Variable "$i.contacts[0].phone" has an invalid value: String cannot represent a non string value: 1',
    ],
    [
      'Variable "$i" got invalid value { a: 1 }; Field "a" is not defined by type "LeadInput".',
      "a",
      'Variable "$i" has an invalid value: Field "a" is not defined by type "LeadInput".',
    ],
    [
      'Variable "$i" got invalid value "multi\nline" at "i.age"; Int cannot\nbe',
      "age",
      'Variable "$i.age" has an invalid value: Int cannot\nbe',
    ],
  ])("%j refers to %s", (message, field, expected = message) => {
    const error = refused(message);
    expect([error.message, error.extensions]).toEqual([
      expected,
      { code: "BAD_USER_INPUT", field, requestId: "r1" },
    ]);
    expect(error.message).not.toMatch(/hunter2|password/);
  });

  test("an invalid enumeration value is reported with the valid ones", () => {
    const message =
      'Variable "$i" got invalid value "NWE" at "i.status"; Value "NWE" does not exist in "Status" enum. Did you mean the enum value "NEW"?';
    expect(refused(message).message).toBe(
      'Variable "$i.status" has an invalid value: Value "NWE" does not exist in "Status" enum. Use one of NEW, OLD.',
    );
    const closed = refused(message, { schemaIsOpen: false });
    expect(closed.message).not.toMatch(/Status|NEW|Did you mean/);
    expect(closed.extensions).not.toHaveProperty("allowed");
  });

  test("other messages, and those with a path, are internal errors", () => {
    expect(refused("Something else.").extensions.code).toBe("INTERNAL");
    const message = 'Variable "$i" got invalid value 1; No.';
    expect(
      executionError(new GraphQLError(message, { nodes: [node], path: ["create"] }), request().state)
        .extensions.code,
    ).toBe("INTERNAL");
    expect(executionError(new GraphQLError(message), request().state).extensions.code).toBe("INTERNAL");
  });
});

describe("execution", () => {
  test.each([
    "Must provide an operation.",
    "Must provide operation name if query contains multiple operations.",
    'Unknown operation named "x".',
  ])("%s refers to the choice of the operation", (message) => {
    expect(executionError(new GraphQLError(message), undefined).extensions).toEqual({
      code: "BAD_USER_INPUT",
      field: "operationName",
      requestId: undefined,
    });
    expect(executionError(new GraphQLError(message, { path: ["a"] }), undefined).extensions.code).toBe(
      "INTERNAL",
    );
    expect(executionError(new GraphQLError(`x ${message}`), undefined).extensions.code).toBe("INTERNAL");
  });

  test("an error keeps its locations and its path", () => {
    const document = parse("{ ok }");
    const field = (document.definitions[0] as any).selectionSet.selections[0];
    const cause = new CodedError("CONFLICT", "There is one.", { existingId: "1" });
    const { state, logged } = request();
    const error = executionError(
      new GraphQLError("x", { nodes: [field], path: ["ok"], originalError: cause }),
      state,
    );
    expect(error).toMatchObject({ message: "There is one.", path: ["ok"], nodes: [field] });
    expect(error.locations).toEqual([{ line: 1, column: 3 }]);
    expect(error.extensions).toEqual({ code: "CONFLICT", existingId: "1", requestId: "r1" });
    expect(logged).toEqual([]);
  });

  test("sets the header Retry-After, also beside data", () => {
    const headers: Record<string, string> = {};
    const response = {
      headersSent: false,
      setHeader: (name: string, value: string) => void (headers[name] = value),
    };
    const limited = (code: "RATE_LIMITED" | "UNAVAILABLE" | "CONFLICT", retryAfterSeconds: unknown) =>
      new CodedError(code, "Wait.", { retryAfterSeconds });
    executionError(limited("RATE_LIMITED", 1.2), undefined, response as never);
    expect(headers).toEqual({ "Retry-After": "2" });
    for (const [error, value] of [
      [limited("UNAVAILABLE", 0), "0"],
      [limited("RATE_LIMITED", -1), "0"],
      [limited("RATE_LIMITED", undefined), "0"],
      [limited("CONFLICT", 9), "0"],
    ] as const) {
      retryAfter(response as never, error);
      expect(headers).toEqual({ "Retry-After": value });
    }
    response.headersSent = true;
    retryAfter(response as never, limited("RATE_LIMITED", 7));
    expect(headers).toEqual({ "Retry-After": "0" });
  });
});

describe("the field that a domain of the database refused", () => {
  const member = (query: string, variableValues: unknown = {}, dataType: unknown = "email_address") => {
    const [operation] = parse(query).definitions as any[];
    const [node] = operation.selectionSet.selections;
    const error = new GraphQLError("x", { nodes: [node] });
    return inputMember({ dataType }, error, { schema, variableValues } as never);
  };
  test.each([
    ['mutation { create(input: { email: "a" }) }', "email"],
    ['mutation { create(input: { email: "a", other: "b" }) }', undefined],
    ["mutation { create(input: { email: null, age: 1 }) }", undefined],
    ['mutation { create(input: { contact: { email: "a", phone: "1" } }) }', "contact.email"],
    ['mutation { create(input: { contacts: [{ email: "a", phone: "1" }] }) }', "contacts.email"],
    [
      'mutation { create(input: { contacts: [{ email: "a", phone: "1" }, { email: "b", phone: "1" }] }) }',
      undefined,
    ],
    ['mutation { add(email: "a") }', "email"],
    ['mutation { add(input: { email: "a" }) }', "email"],
    ["mutation { unknown }", undefined],
  ])("%s: %s", (query, field) => {
    expect(member(query)).toBe(field);
  });
  test("by variables, and only if the database names a domain", () => {
    const query = "mutation ($i: LeadInput!) { create(input: $i) }";
    const values = { i: { other: "a", contact: { phone: "1" } } };
    expect(member(query, values)).toBe("other");
    expect(member(query, values, "other_domain")).toBeUndefined();
    expect(member(query, values, null)).toBeUndefined();
    expect(inputMember(undefined, undefined, { schema } as never)).toBeUndefined();
    expect(inputMember({ dataType: "email_address" }, undefined, { schema } as never)).toBeUndefined();
    const coded = new CodedError(
      "BAD_USER_INPUT",
      "No address.",
      {},
      { cause: { dataType: "email_address" } },
    );
    const [operation] = parse(query).definitions as any[];
    const from = new GraphQLError("x", {
      nodes: operation.selectionSet.selections,
      path: ["create"],
      originalError: coded,
    });
    const args = { schema, variableValues: values } as never;
    expect(executionError(from, request().state, undefined, args).extensions).toMatchObject({
      field: "other",
    });
    expect(executionError(from, request().state).extensions).not.toHaveProperty("field");
  });
});

test("the path of a literal is that of an argument or a field, otherwise there is none", () => {
  const [error] = refusals(
    "mutation { a: create(input: { age: 1 }) b: create(input: { contact: { phone: 1 } }) }",
  );
  expect(literalPath(error!)).toBe("input.contact.phone");
  expect(literalPath(new GraphQLError("x"))).toBeUndefined();
  const [operation] = parse("{ ok }").definitions as any[];
  expect(literalPath(new GraphQLError("x", { nodes: operation.selectionSet.selections }))).toBeUndefined();
  const made = { kind: Kind.INT, value: "1" } as never;
  expect(literalPath(new GraphQLError("x", { nodes: [made] }))).toBeUndefined();
});

test.each([
  [
    'Cannot query field "leads" on type "Query". Did you mean "lead"?',
    "{ leads }",
    'Cannot query field "leads" on type "…".',
  ],
  [
    'Unknown argument "first" on field "Query.leads".',
    "{ leads(first: 1) }",
    'Unknown argument "first" on field "leads".',
  ],
  ['Expected "[Int!]!".', "{ a(b: Int) }", 'Expected "[Int!]!".'],
  ['Expected "String!", found 1.', "{ a }", 'Expected "…", found 1.'],
  ['Field "A.b.c".', "{ A b }", 'Field "b".'],
  ['"" and "1" stay.', "{ a }", '"" and "1" stay.'],
  ['Did you mean "x"?', "{ a }", 'Did you mean "…"?'],
])("%s, without names of the schema", (message, written, expected) => {
  expect(withoutNames(message, written)).toBe(expected);
});

describe("thrown values", () => {
  const none = new Map();
  const coded = (error: unknown) => toCodedError(error, none, { signedIn: false });

  test("use the coded error in them, up to a certain depth", () => {
    const cause = new CodedError("CONFLICT", "There is one.");
    expect(coded(new Error("x", { cause: new GraphQLError("y", { originalError: cause }) }))).toBe(cause);
    let deep: Error = cause;
    for (let level = 0; level < 7; level++) deep = new Error("x", { cause: deep });
    expect(coded(deep)).toBe(cause);
    expect(coded(new Error("x", { cause: deep })).code).toBe("INTERNAL");
    const own = new Error("x");
    own.cause = own;
    expect(coded(own).cause).toBe(own);
    for (const nothing of [undefined, null, "text"]) expect(coded(nothing).code).toBe("INTERNAL");
  });

  test("use errors of the planner, by their code or as a timeout", async () => {
    expect(coded(new SafeError("No.", { code: "CONFLICT", statusCode: 400, a: 1 } as never))).toMatchObject({
      code: "CONFLICT",
      message: "No.",
      extensions: { a: 1 },
    });
    expect(Object.keys(coded(new SafeError("No.", { statusCode: 400 } as never)).extensions)).toEqual([]);
    expect(coded(new SafeError("Timeout exceeded.")).code).toBe("BAD_USER_INPUT");
    const { errors } = (await grafast({
      schema: makeGrafastSchema({ typeDefs: "type Query { ok: Int }" }),
      source: "{ ok }",
      resolvedPreset: { grafast: { timeouts: { planning: -1 } } } as unknown as GraphileConfig.ResolvedPreset,
      requestContext: {},
    })) as ExecutionResult;
    expect(coded(errors![0])).toMatchObject({
      code: "LIMIT_EXCEEDED",
      message: expect.stringMatching(/too long/),
    });
    expect(coded(new SafeError("No.", { code: "UNKNOWN" } as never)).code).toBe("BAD_USER_INPUT");
  });

  test("report a missing record if a change found no row", () => {
    for (const change of ["deleted", "updated"])
      expect(coded(new Error(`No values were ${change} in collection 'a'`))).toMatchObject({
        code: "NOT_FOUND",
        message: "There is no such record, or you may not see it.",
        cause: { message: `No values were ${change} in collection 'a'` },
      });
    for (const message of [
      "No values were read in collection 'a'",
      "x No values were deleted in collection 'a'",
    ])
      expect(coded(new Error(message)).code).toBe("INTERNAL");
  });

  test("are logged by their innermost cause, without values of clients", () => {
    const inner = Object.assign(new Error("in"), {
      code: "23505",
      detail: "Key (a)=(secret)",
      table: "t",
      constraint: "c",
      schema: "s",
      routine: "r",
    });
    const logged = describeForLog(internalError(new Error("out", { cause: inner })));
    expect(logged).toEqual({
      name: "Error",
      message: "in",
      stack: expect.stringContaining("in"),
      code: "23505",
      schema: "s",
      table: "t",
      constraint: "c",
      routine: "r",
    });
    expect(describeForLog("text")).toEqual({ message: "text" });
    expect(describeForLog({ message: 7 })).toEqual({ message: "[object Object]" });
    expect(describeForLog(undefined)).toEqual({ message: "undefined" });
  });
});

test.each([
  [Infinity, 4_096, 1_024],
  [20_000, 4_096, 1_024],
  [8_191, 4_095, 1_023],
  [1_024, 512, 128],
  [100, 50, 12],
  [40, 20, 8],
  [10, 16, 8],
])("of %d descriptors %d are for connections, %d for one address", (descriptors, total, ofAddress) => {
  expect(connectionLimits(descriptors)).toEqual({ total, ofAddress });
});

test("an unreachable database is logged as a failure, a refusal that the database decided is not", () => {
  const failed = (code: string) => Object.assign(new Error("refused"), { code });
  const unavailable = (cause: Error) => new CodedError("UNAVAILABLE", "Try again.", {}, { cause });
  expect(failureForLog(unavailable(failed("ECONNREFUSED")))).toMatchObject({ err: { code: "ECONNREFUSED" } });
  expect(failureForLog(unavailable(failed("PLAT0")))).toBeUndefined();
  expect(failureForLog(internalError(failed("PLAT0")))).toBeDefined();
});

test("of the providers, a failure of the file store concerns the operator", () => {
  const failed = (provider: string) =>
    failureForLog(
      new CodedError("PROVIDER_ERROR", "It failed.", { provider }, { cause: new Error("no disk") }),
    );
  expect(failed("files")).toEqual({
    event: "files.store_failed",
    err: expect.objectContaining({ message: "no disk" }),
  });
  expect(failed("drafts")).toBeUndefined();
});

test("connections are counted by network, except for those of proxies, and slots are released once", () => {
  const { take } = countByAddress(2, (address) => address === "10.0.0.1");
  const [first, second] = [take("2001:db8::1"), take("2001:db8::2")];
  expect([first, second].every(Boolean)).toBe(true);
  expect(take("2001:db8::3")).toBeUndefined();
  expect(take("192.0.2.1")).toBeDefined();
  for (let n = 0; n < 5; n++) expect(take("10.0.0.1")).toBeDefined();
  first!();
  first!();
  expect(take("2001:db8::3")).toBeDefined();
  expect(take("2001:db8::4")).toBeUndefined();
  expect([take(undefined), take(undefined)].every(Boolean)).toBe(true);
  expect(take(undefined)).toBeUndefined();
});

test("an error without a code of ours is masked, and its place is kept", () => {
  const known = new GraphQLError("Refused.", { extensions: { code: "FORBIDDEN" } });
  expect(maskError(known)).toBe(known);
  const path = ["a", 1];
  for (const extensions of [{}, { code: "OTHER" }]) {
    const masked = maskError(new GraphQLError("connect ECONNREFUSED", { path, extensions }));
    expect([masked.message, masked.path, masked.extensions]).toEqual([
      internalMessage,
      path,
      { code: "INTERNAL" },
    ]);
  }
});

test("a user agent is kept without NUL, and at most 500 characters of it", () => {
  const of = (agent?: string) =>
    userAgentOf({ headers: { ...(agent !== undefined && { "user-agent": agent }) } });
  expect([of("a\0b"), of("x".repeat(600))?.length, of("\0"), of(""), of()]).toEqual([
    "ab",
    500,
    undefined,
    undefined,
    undefined,
  ]);
});
