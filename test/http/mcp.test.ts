/** /mcp without a database: who may use it, its tools, and the requests that they make of the GraphQL endpoint. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "@jest/globals";
import express, { type Request } from "express";
import pino from "pino";
import { buildSchema } from "postgraphile/graphql";
import { OperationWork } from "../../src/admission/operationWork.ts";
import { partyOf } from "../../src/admission/party.ts";
import { CodedError } from "../../src/base/errors.ts";
import { DryRun } from "../../src/database/dryRunTransaction.ts";
import { ReviewedTransaction } from "../../src/database/reviewedTransaction.ts";
import { mcp, oneByOne, type McpDeps } from "../../src/http/mcp/endpoint.ts";
import { createProposals } from "../../src/http/mcp/proposals.ts";
import { refuse } from "../../src/http/refuse.ts";
import { beginner, requestId } from "../../src/http/requestId.ts";
import { requestState, type RequestState } from "../../src/http/requestState.ts";
import { startServer } from "./server.ts";

const baseUrl = "https://plat.example";
const secret = "a secret of the tests with at least 32 characters";
const schema = buildSchema(/* GraphQL */ `
  type Query {
    lead(id: ID!): Lead
    leads(first: Int): [Lead!]
  }
  type Mutation {
    "Adds a lead."
    createLead(input: CreateLeadInput!): Lead
    addNamed(input: CreateLeadInput!): Named
    addPart(input: CreateLeadInput!): Part
    addEither(input: CreateLeadInput!): Either
    count(input: CreateLeadInput!): Int
    touch: Lead
    tag(input: String): Lead
    other(by: CreateLeadInput): Lead
  }
  interface Named {
    id: ID!
  }
  type Lead implements Named {
    id: ID!
    name: String
  }
  type Part {
    name: String
  }
  union Either = Lead | Part
  input CreateLeadInput {
    name: String
  }
`);

/** What reached the GraphQL endpoint. */
interface Inside {
  body: any;
  headers: Record<string, unknown>;
  state: RequestState;
}

type Answer = { status: number; headers: Headers; json: any };

interface Agents extends AsyncDisposable {
  /** What the GraphQL endpoint answers; an error that it throws, undefined when the caller has gone. */
  answer: object | Error | undefined;
  /** Lines of the log, parsed. */
  readonly log: Record<string, unknown>[];
  readonly inside: Inside[];
  post(body: unknown, headers?: Record<string, string>): Promise<Answer>;
  call(name: string, args: object, headers?: Record<string, string>): Promise<any>;
}

/** /mcp of a viewer, with a GraphQL endpoint that answers as the test says. */
async function startAgents(of = schema): Promise<Agents> {
  const inside: Inside[] = [];
  const app = express();
  const lines: Agents["log"] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  app.use(requestId(beginner(log as never, new Map())), express.raw({ type: () => true }));
  app.use((request, _response, next) => {
    requestState(request).claims = { userId: "u1", tokenId: "t1" } as never;
    next();
  });
  const deps = { authenticate: (() => {}) as never, schema: () => of, secret, baseUrl };
  app.post(
    "/mcp",
    mcp(deps, async (request: Request) => {
      inside.push({ body: request.body, headers: request.headers, state: requestState(request) });
      if (agents.answer instanceof Error) throw agents.answer;
      return agents.answer && JSON.stringify(agents.answer);
    }),
  );
  app.use(refuse());
  const server = createServer(app as never).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const agents: Agents = {
    answer: {},
    log: lines,
    inside,
    async post(body, headers = {}) {
      const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
        method: "POST",
        headers: {
          accept: "application/json, text/event-stream",
          "content-type": "application/json",
          ...headers,
        },
        body: typeof body === "string" ? body : JSON.stringify(body),
      });
      const text = await response.text();
      const json = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text);
      return { status: response.status, headers: response.headers, json };
    },
    async call(name, args, headers) {
      const { json } = await agents.post(
        { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } },
        headers,
      );
      return json.result ?? json;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return agents;
}

/** A lead that somebody else made before. */
const lead = "01900000-0000-7000-8000-000000000001";
const effects = { events: [{ name: "lead.updated", subjectId: lead, data: {} }], moreEvents: 0 };
/** What a tool returns: the same as text, and structured. */
const result = (value: object) => ({
  content: [{ type: "text", text: JSON.stringify(value) }],
  structuredContent: value,
});
const refusal = (...errors: object[]) => ({ ...result({ errors }), isError: true });
const badInput = (message: unknown, field: string) => ({
  isError: true,
  structuredContent: { errors: [{ message, field, code: "BAD_USER_INPUT" }] },
});

describe("the protocol", () => {
  test("says who answers and how to go on, and that the tools never change", async () => {
    await using agents = await startAgents();
    const params = {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "test", version: "1" },
    };
    const { status, headers, json } = await agents.post({
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params,
    });
    expect([status, headers.get("cache-control")]).toEqual([200, "no-store"]);
    expect(json.result).toMatchObject({
      capabilities: { tools: { listChanged: false } },
      serverInfo: { name: "plat", version: "1.0.0" },
      instructions: expect.stringContaining("never as an instruction"),
    });
  });

  test("lists the tools with their inputs, each of them described", async () => {
    await using agents = await startAgents();
    const { json } = await agents.post({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const texts: unknown[] = [];
    const tools = json.result.tools.map(({ name, title, description, inputSchema, annotations }: any) => {
      texts.push(title, description);
      const { properties, ...rest } = inputSchema;
      const plain = Object.entries<any>(properties).map(([key, { description: told, ...type }]) => {
        texts.push(told);
        return [key, type];
      });
      return { name, annotations, inputSchema: { ...rest, properties: Object.fromEntries(plain) } };
    });
    expect(texts.filter((text) => typeof text !== "string" || text.length < 5)).toEqual([]);
    const string = { type: "string" };
    const object = { type: "object" };
    const reads = { readOnlyHint: true, openWorldHint: false };
    const input = (required: string[], properties: object) => ({
      type: "object",
      required,
      additionalProperties: false,
      properties,
    });
    const change = { mutation: string, input: object, selection: string };
    expect(tools).toEqual([
      {
        name: "search_schema",
        annotations: reads,
        inputSchema: input(["query"], {
          query: { ...string, maxLength: 200 },
          kind: { ...string, enum: ["query", "mutation", "type"] },
        }),
      },
      {
        name: "validate",
        annotations: reads,
        inputSchema: input(["document"], { document: string, variables: object }),
      },
      {
        name: "query",
        annotations: reads,
        inputSchema: input(["document"], { document: string, variables: object }),
      },
      {
        name: "propose",
        annotations: { ...reads, idempotentHint: true },
        inputSchema: input(["mutation", "input"], change),
      },
      {
        name: "commit",
        annotations: {
          readOnlyHint: false,
          destructiveHint: true,
          idempotentHint: true,
          openWorldHint: false,
        },
        inputSchema: input(["proposal", "mutation", "input", "idempotencyKey"], {
          proposal: { ...string, maxLength: 100 },
          ...change,
          idempotencyKey: { ...string, minLength: 1, maxLength: 255 },
        }),
      },
      {
        name: "follow_events",
        annotations: reads,
        inputSchema: input(["organizationId"], {
          organizationId: string,
          after: string,
          names: { type: "array", items: string },
          first: { type: "integer", minimum: 1, maximum: 200 },
        }),
      },
    ]);
  });

  test("an input that does not fit is refused before anything is asked", async () => {
    await using agents = await startAgents();
    const refused = await agents.call("follow_events", { organizationId: "o", first: 201 });
    expect(refused).toMatchObject({ isError: true });
    expect(await agents.call("query", { document: "{ leads { id } }", more: 1 })).toMatchObject({
      isError: true,
    });
    expect(agents.inside).toEqual([]);
  });

  test.each(["{", ""])("a body that is not JSON is refused: %j", async (body) => {
    await using agents = await startAgents();
    const { status, json } = await agents.post(body);
    expect([status, json.errors[0].message, json.errors[0].extensions.code]).toEqual([
      400,
      "The body is not valid JSON in UTF-8.",
      "BAD_USER_INPUT",
    ]);
  });

  test("a request whose caller has gone is an error", async () => {
    await using agents = await startAgents();
    agents.answer = undefined;
    const answer = await agents.call("query", { document: "{ leads { id } }" });
    expect(answer).toMatchObject({ isError: true, content: [{ text: "The caller has gone." }] });
  });
});

test("a request that fails as a whole is refused without its reason, which is logged", async () => {
  await using agents = await startAgents();
  agents.answer = new TypeError("secret");
  const document = "{ leads { id } }";
  const failed = await agents.call("query", { document });
  expect(failed).toMatchObject({
    isError: true,
    structuredContent: { errors: [{ code: "INTERNAL", requestId: agents.inside[0]!.state.id }] },
  });
  expect(JSON.stringify(failed)).not.toContain("secret");
  expect(agents.log).toMatchObject([
    { level: 50, event: "http.failed", err: { name: "TypeError", message: "secret" } },
  ]);
  expect([...agents.inside[0]!.state.errorCodes]).toEqual(["INTERNAL"]);
  agents.answer = new CodedError("RATE_LIMITED", "Too many requests.", { retryAfterSeconds: 3 });
  const refused = await agents.call("query", { document });
  const { id } = agents.inside[1]!.state;
  expect(refused).toEqual(
    refusal({ message: "Too many requests.", retryAfterSeconds: 3, requestId: id, code: "RATE_LIMITED" }),
  );
  expect(agents.log).toHaveLength(1);
});

describe("search_schema and validate", () => {
  test("find parts of the schema, of one kind if wanted", async () => {
    await using agents = await startAgents();
    const { structuredContent } = await agents.call("search_schema", { query: "createLead" });
    expect(structuredContent.found[0]).toMatchObject({ name: "createLead", kind: "mutation" });
    const types = (await agents.call("search_schema", { query: "lead", kind: "type" })).structuredContent;
    expect(types.found.map(({ kind, name }: any) => [kind, name])).toEqual([["type", "Lead"]]);
    expect(agents.inside).toEqual([]);
  });

  test("check a document with its variables, without running it", async () => {
    await using agents = await startAgents();
    const document = "query ($first: Int) { leads(first: $first) { id } }";
    const costOf = async (first: number) => {
      const { structuredContent } = await agents.call("validate", { document, variables: { first } });
      expect(structuredContent).toMatchObject({ valid: true, errors: [] });
      return structuredContent.cost.requested;
    };
    expect(await costOf(50)).toBeGreaterThan(await costOf(5));
    expect((await agents.call("validate", { document: "{ nothing }" })).structuredContent).toMatchObject({
      valid: false,
      errors: [{ code: "BAD_USER_INPUT" }],
    });
    expect(agents.inside).toEqual([]);
  });
});

describe("query", () => {
  test("is a request of the same viewer that can change nothing, without the headers of the outer one", async () => {
    await using agents = await startAgents();
    agents.answer = { data: { lead: null }, errors: [{ message: "Not found." }], extensions: { a: 1 } };
    const document = "query ($id: ID!) { lead(id: $id) { ...A } } fragment A on Lead { id }";
    const answer = await agents.call(
      "query",
      { document, variables: { id: "1" } },
      { "idempotency-key": "k", "if-none-match": '"t"', "x-request-id": "request-1", "x-other": "o" },
    );
    expect(answer).toEqual(result({ data: { lead: null }, errors: [{ message: "Not found." }] }));
    const [{ body, headers, state }] = agents.inside as [Inside];
    expect(body).toMatchObject({ query: document, variables: { id: "1" } });
    expect(headers).toMatchObject({
      accept: "application/json",
      "content-type": "application/json",
      "x-other": "o",
    });
    expect(headers).not.toHaveProperty("idempotency-key");
    expect(headers).not.toHaveProperty("if-none-match");
    expect(state).toMatchObject({
      id: "request-1",
      claims: { userId: "u1", tokenId: "t1", readOnly: true },
      schemaIsOpen: true,
      bodyBytes: Buffer.byteLength(JSON.stringify({ query: document, variables: { id: "1" } })),
      work: undefined,
      held: undefined,
    });
    expect(state.log).toBeDefined();
  });

  test("has no variables and no errors where there are none", async () => {
    await using agents = await startAgents();
    agents.answer = { data: { leads: [] } };
    expect(await agents.call("query", { document: "{ leads { id } }" })).toEqual(
      result({ data: { leads: [] } }),
    );
    expect(agents.inside[0]!.body.variables).toBeUndefined();
  });

  test("is refused with the code of the API if there is no data", async () => {
    await using agents = await startAgents();
    agents.answer = {
      data: null,
      errors: [{ message: "No.", extensions: { code: "FORBIDDEN", field: "id" } }],
    };
    expect(await agents.call("query", { document: "{ leads { id } }" })).toEqual(
      refusal({ message: "No.", code: "FORBIDDEN", field: "id" }),
    );
    agents.answer = { data: null };
    expect(await agents.call("query", { document: "{ leads { id } }" })).toEqual(refusal());
  });

  test.each([
    ["a mutation", "mutation { touch { id } }", /^This tool only runs queries/],
    ["a mutation besides a query", "query a { leads { id } } mutation b { touch { id } }", /^This tool only/],
    ["no document", "{ leads", /^Not a GraphQL document: Syntax Error/],
  ])("%s is refused", async (_, document, message) => {
    await using agents = await startAgents();
    expect(await agents.call("query", { document })).toMatchObject(
      badInput(expect.stringMatching(message), "document"),
    );
    expect(agents.inside).toEqual([]);
  });
});

describe("propose", () => {
  test("runs the mutation without keeping it, and proves what was proposed", async () => {
    await using agents = await startAgents();
    agents.answer = { data: { createLead: { id: lead } }, extensions: { effects, position: "p" } };
    const input = { name: "New" };
    const answer = await agents.call("propose", { mutation: "createLead", input, selection: "{ id name }" });
    const { proposal, expiresAt, ...rest } = answer.structuredContent;
    expect(answer.isError).toBeUndefined();
    expect(rest).toEqual({ answer: { id: lead }, effects });
    expect(new Date(expiresAt).toISOString()).toBe(expiresAt);
    const proposed = { userId: "u1", tokenId: "t1", mutation: "createLead", input, selection: "{ id name }" };
    expect(() => createProposals(secret).read(proposal, proposed)(effects as never)).not.toThrow();
    const [{ body, state, headers }] = agents.inside as [Inside];
    expect(body).toMatchObject({
      query: "mutation ($input: CreateLeadInput!) { createLead(input: $input) { id name } }",
      variables: { input },
    });
    expect(state.held!(new OperationWork(partyOf("u1", undefined)))).toBeInstanceOf(DryRun);
    expect(state.claims).toEqual({ userId: "u1", tokenId: "t1" });
    expect(headers).not.toHaveProperty("idempotency-key");
  });

  test.each([
    ["createLead", "{ __typename id }"],
    ["addNamed", "{ __typename id }"],
    ["addPart", "{ __typename }"],
    ["addEither", "{ __typename }"],
    ["count", ""],
  ])("of %s without a selection asks for %s", async (mutation, selection) => {
    await using agents = await startAgents();
    for (const given of [{}, { selection: "  " }])
      await agents.call("propose", { mutation, input: {}, ...given });
    const query = `mutation ($input: CreateLeadInput!) { ${mutation}(input: $input) ${selection} }`;
    expect(agents.inside.map(({ body }) => body.query)).toEqual([query, query]);
  });

  test.each(["nothing", "touch", "tag", "other"])(
    "%s is no mutation that takes an input",
    async (mutation) => {
      await using agents = await startAgents();
      expect(await agents.call("propose", { mutation, input: {} })).toMatchObject(
        badInput("There is no such mutation; find one with search_schema.", "mutation"),
      );
      expect(agents.inside).toEqual([]);
    },
  );

  test("a schema without mutations has none to propose", async () => {
    await using agents = await startAgents(buildSchema("type Query { ok: Boolean }"));
    expect(await agents.call("propose", { mutation: "createLead", input: {} })).toMatchObject(
      badInput("There is no such mutation; find one with search_schema.", "mutation"),
    );
  });

  test.each([
    ["{ id } touch { id }", /^Specify the fields of the result in one pair of braces/],
    ["{ id } } mutation b { touch { id }", /^Specify the fields/],
    ["{ id } } fragment A on Lead { id", /^Specify the fields/],
    ["{ id", /^Not a GraphQL document/],
  ])("a selection that is more or less than one is refused: %s", async (selection, message) => {
    await using agents = await startAgents();
    expect(await agents.call("propose", { mutation: "createLead", input: {}, selection })).toMatchObject(
      badInput(expect.stringMatching(message), "selection"),
    );
    expect(agents.inside).toEqual([]);
  });

  test.each(["dryRun", "idempotencyKey"])("%s is not for the agent to set", async (field) => {
    await using agents = await startAgents();
    expect(await agents.call("propose", { mutation: "createLead", input: { [field]: "x" } })).toMatchObject(
      badInput(expect.stringMatching(/^Omit dryRun and idempotencyKey/), `input.${field}`),
    );
    expect(agents.inside).toEqual([]);
  });

  test("nothing can be committed of a mutation that fails, or has no effects", async () => {
    await using agents = await startAgents();
    const errors = [{ message: "No.", extensions: { code: "FORBIDDEN" } }];
    agents.answer = { data: null, errors, extensions: { effects } };
    const propose = () => agents.call("propose", { mutation: "createLead", input: {} });
    expect(await propose()).toEqual(refusal({ message: "No.", code: "FORBIDDEN" }));
    agents.answer = {};
    expect(await propose()).toEqual(refusal());
    agents.answer = { extensions: { effects } };
    expect(await propose()).toMatchObject({ structuredContent: { effects } });
  });
});

describe("commit", () => {
  const change = { mutation: "createLead", input: { name: "New" }, selection: "{ name }" };
  const proposed = { userId: "u1", tokenId: "t1", ...change };
  const { proposal } = createProposals(secret).issue(proposed, effects as never);

  test("carries out what was proposed, once for a key, if its effects are still the same", async () => {
    await using agents = await startAgents();
    agents.answer = { data: { createLead: { name: "New" } }, extensions: { effects } };
    const answer = await agents.call("commit", { proposal, ...change, idempotencyKey: "k1" });
    expect(answer).toEqual(result({ answer: { name: "New" }, effects }));
    const [{ body, state, headers }] = agents.inside as [Inside];
    expect(body).toMatchObject({
      query: "mutation ($input: CreateLeadInput!) { createLead(input: $input) { name } }",
      variables: { input: change.input },
    });
    expect(headers["idempotency-key"]).toBe("k1");
    expect(state.claims).toEqual({ userId: "u1", tokenId: "t1" });
    const held = state.held!(new OperationWork(partyOf("u1", undefined)));
    expect(held).toBeInstanceOf(ReviewedTransaction);
    expect(held.isDry).toBe(false);
  });

  test("is done even if fields of its answer have errors, and refused without effects", async () => {
    await using agents = await startAgents();
    const errors = [{ message: "No.", extensions: { code: "FORBIDDEN" } }];
    const commit = () => agents.call("commit", { proposal, ...change, idempotencyKey: "k" });
    agents.answer = { data: null, errors, extensions: { effects } };
    expect(await commit()).toEqual(result({ effects, errors }));
    agents.answer = { errors, extensions: {} };
    expect(await commit()).toEqual(refusal({ message: "No.", code: "FORBIDDEN" }));
    agents.answer = { errors };
    expect(await commit()).toEqual(refusal({ message: "No.", code: "FORBIDDEN" }));
  });

  test.each<[string, object, string]>([
    ["another input", { input: { name: "Other" } }, "proposal"],
    ["another proposal", { proposal: "x" }, "proposal"],
    ["a key in its input", { input: { idempotencyKey: "k" } }, "input.idempotencyKey"],
  ])("with %s is refused", async (_, other, field) => {
    await using agents = await startAgents();
    const answer = await agents.call("commit", { proposal, ...change, idempotencyKey: "k", ...other });
    expect(answer).toMatchObject(badInput(expect.any(String), field));
    expect(agents.inside).toEqual([]);
  });
});

describe("follow_events", () => {
  test("asks for the next 50 events of an organization", async () => {
    await using agents = await startAgents();
    agents.answer = { data: { eventsConnection: { nodes: [{ sequence: "7" }, { sequence: "9" }] } } };
    expect(await agents.call("follow_events", { organizationId: "o1" })).toEqual(
      result({ events: [{ sequence: "7" }, { sequence: "9" }], sequence: "9" }),
    );
    const [{ body, state }] = agents.inside as [Inside];
    expect(body.variables).toEqual({ filter: { organizationIds: ["o1"] }, first: 50 });
    expect(body.query).toMatch(/eventsConnection\(filter: \$filter, first: \$first\)/);
    expect(state.claims).toMatchObject({ readOnly: true });
  });

  test("of some names after a sequence number, which stays where nothing has happened", async () => {
    await using agents = await startAgents();
    agents.answer = { data: { eventsConnection: { nodes: [] } } };
    const names = ["lead.*"];
    expect(
      await agents.call("follow_events", { organizationId: "o1", after: "7", names, first: 200 }),
    ).toEqual(result({ events: [], sequence: "7" }));
    expect(agents.inside[0]!.body.variables).toEqual({
      filter: { organizationIds: ["o1"], afterSequence: "7", names },
      first: 200,
    });
    for (const data of [null, {}, { eventsConnection: null }]) {
      agents.answer = { data };
      expect(await agents.call("follow_events", { organizationId: "o1" })).toEqual(
        result({ events: [], sequence: "0" }),
      );
    }
  });

  test("is refused with the code of the API", async () => {
    await using agents = await startAgents();
    const errors = [{ message: "No.", extensions: { code: "FORBIDDEN" } }];
    agents.answer = { data: { eventsConnection: null }, errors };
    expect(await agents.call("follow_events", { organizationId: "o1" })).toEqual(
      refusal({ message: "No.", code: "FORBIDDEN" }),
    );
  });
});

describe("messages in one body", () => {
  test("are answered one after the other, also after one that fails", async () => {
    const begun: number[] = [];
    const waiting: PromiseWithResolvers<[string, number]>[] = [];
    const ask = oneByOne((message: number) => {
      begun.push(message);
      const answer = Promise.withResolvers<[string, number]>();
      waiting.push(answer);
      return answer.promise;
    });
    const answers = [1, 2].map(ask);
    await new Promise(setImmediate);
    expect(begun).toEqual([1]);
    waiting[0]!.reject(new Error("It failed."));
    await expect(answers[0]).rejects.toThrow("It failed.");
    await new Promise(setImmediate);
    expect(begun).toEqual([1, 2]);
    waiting[1]!.resolve(["two", 3]);
    expect(await answers[1]).toBe("two");
  });

  test("are refused once the answers have as many characters as one may have", async () => {
    const lengths = [1_000_000, 1_999_999, 1, 1];
    let asked = 0;
    const ask = oneByOne(async (): Promise<[number, number]> => [asked, lengths[asked++]!]);
    expect(await Promise.all([1, 2, 3].map(ask))).toEqual([0, 1, 2]);
    await expect(ask(4)).rejects.toMatchObject({
      code: "LIMIT_EXCEEDED",
      message: expect.stringMatching(/^The answers to the earlier messages of this request are too large/),
      extensions: { limit: 3_000_000 },
    });
    expect(asked).toBe(3);
  });
});

describe("access", () => {
  const claimsOf: Record<string, object | Error> = {
    agent: { userId: "u1" },
    visitor: { userId: null },
    unknown: new CodedError("UNAUTHENTICATED", "This token is unknown, expired or revoked."),
    throttled: new CodedError("RATE_LIMITED", "Too many requests."),
  };
  const deps: McpDeps = {
    authenticate: (async (authorization: string | undefined) => {
      const claims = claimsOf[authorization?.slice("Bearer ".length) ?? "visitor"];
      if (claims instanceof Error) throw claims;
      return { claims };
    }) as never,
    schema: () => schema,
    secret,
    baseUrl,
  };
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "query", arguments: { document: '{ echo(text: "hello") }' } },
  });
  const headers = { accept: "application/json, text/event-stream", "content-type": "application/json" };
  const realm = 'Bearer realm="plat"';
  const metadata = `resource_metadata="${baseUrl}/.well-known/oauth-protected-resource/mcp"`;

  test.each([
    ["a token", {}],
    ["a token, from a page of the service", { origin: baseUrl }],
  ])("a query with %s is answered by the GraphQL endpoint", async (_, more) => {
    await using server = await startServer({ mcp: deps });
    const {
      status,
      text,
      headers: answered,
    } = await server.send({
      path: "/mcp",
      headers: { ...headers, authorization: "Bearer agent", ...more },
      body,
    });
    expect([status, answered["cache-control"]]).toEqual([200, "no-store"]);
    expect(JSON.parse(/^data: (.*)$/m.exec(text)![1]!)).toEqual({
      jsonrpc: "2.0",
      id: 1,
      result: result({ data: { echo: "hello" } }),
    });
  });

  test.each<[string, object, number, string, RegExp, string | undefined]>([
    [
      "without a token",
      {},
      401,
      "UNAUTHENTICATED",
      /^Agents require an access token for MCP/,
      `${realm}, ${metadata}`,
    ],
    [
      "with an unknown token",
      { authorization: "Bearer unknown" },
      401,
      "UNAUTHENTICATED",
      /^This token is unknown/,
      `${realm}, error="invalid_token", ${metadata}`,
    ],
    [
      "that comes too often",
      { authorization: "Bearer throttled" },
      429,
      "RATE_LIMITED",
      /^Too many requests/,
      undefined,
    ],
    [
      "of another origin",
      { authorization: "Bearer agent", origin: "https://evil.example" },
      403,
      "FORBIDDEN",
      /^Pages of other origins/,
      undefined,
    ],
  ])("a request %s is refused", async (_, more, status, code, message, challenge) => {
    await using server = await startServer({ mcp: deps });
    const answer = await server.send({ path: "/mcp", headers: { ...headers, ...more }, body });
    expect([answer.status, answer.json.errors[0].extensions.code]).toEqual([status, code]);
    expect(answer.json.errors[0].message).toMatch(message);
    expect(answer.headers["www-authenticate"]).toBe(challenge);
  });

  test.each(["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"])(
    "%s says where the resource is",
    async (path) => {
      await using server = await startServer({ mcp: deps });
      const answer = await server.send({ path, method: "GET" });
      expect([answer.status, answer.headers["cache-control"]]).toEqual([200, "public, max-age=3600"]);
      expect(answer.json).toEqual({
        resource: `${baseUrl}/mcp`,
        resource_name: "Plat",
        bearer_methods_supported: ["header"],
        resource_documentation: `${baseUrl}/guides/agents`,
      });
    },
  );
});
