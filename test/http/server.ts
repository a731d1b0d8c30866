import { request as httpsRequest, Agent, type RequestOptions } from "node:https";
import { request as httpRequest } from "node:http";
import type { IncomingHttpHeaders } from "node:http";
import pino from "pino";
import { makeGrafastSchema } from "postgraphile/grafast";
import { eventLoop } from "../../src/admission/eventLoop.ts";
import { type AppDeps, createApp } from "../../src/http/app.ts";
import { CodedError } from "../../src/base/errors.ts";
import { listen, type Listening } from "../../src/http/listen.ts";
import { transportPreset } from "../../src/http/transportPreset.ts";
import { testCertificate } from "../harness/certificate.ts";

// Otherwise, requests after long documents would wait for seconds. The waiting time is tested in
// test/limits/eventLoop.test.ts.
eventLoop.charge = () => 0;

/** Errors of resolvers and the context function, set by the test that needs them. */
export const faults: { resolver?: () => unknown; context?: () => unknown } = {};

const typeDefs = /* GraphQL */ `
  type Query {
    ok: Boolean
    viewer: User
    echo(text: String): String
    fault: String
    required: String!
    leads(first: Int): [Lead!]
    leadsConnection(first: Int): LeadsConnection
    tags: [String]
  }
  type Mutation {
    createLead(input: LeadInput!): Lead
  }
  type User {
    id: ID!
  }
  type Lead {
    id: ID!
    name: String
    project: Project
    notes(first: Int): [Note!]
  }
  type Project {
    id: ID!
    leads(first: Int): [Lead!]
  }
  type Note {
    id: ID!
    lead: Lead
    author: User
    links(first: Int): [Note!]
  }
  type LeadsConnection {
    nodes: [Lead!]
    pageInfo: PageInfo!
    totalCount: Int!
  }
  type PageInfo {
    hasNextPage: Boolean!
  }
  input LeadInput {
    email: String!
    age: Int
    contact: ContactInput
    tier: Tier
  }
  enum Tier {
    GOLD
    SILVER
  }
  input ContactInput {
    phone: String!
  }
`;

const schema = makeGrafastSchema({
  typeDefs,
  enableDeferStream: false,
  objects: {
    Query: {
      plans: {
        ok: { resolve: () => true },
        echo: { resolve: (_: unknown, args: { text?: string }) => args.text ?? null },
        fault: { resolve: () => Promise.reject(faults.resolver?.()) },
        required: { resolve: () => null },
        viewer: { resolve: () => null },
        leads: { resolve: () => [] },
        leadsConnection: { resolve: () => null },
        tags: { resolve: () => [] },
      } as never,
    },
    Mutation: { plans: { createLead: { resolve: () => null } } as never },
  },
});

export const tokens = { good: "good-token", databaseDown: "database-down" };

function authenticate(authorization: string | undefined): Promise<{ userId: string | null }> {
  if (authorization === undefined) return Promise.resolve({ userId: null });
  const token = authorization.replace(/^Bearer +/i, "");
  if (token === tokens.good) return Promise.resolve({ userId: "user-1" });
  if (token === tokens.databaseDown) {
    const refused = Object.assign(new Error("connect ECONNREFUSED 10.1.2.3:5432"), { code: "ECONNREFUSED" });
    return Promise.reject(refused);
  }
  return Promise.reject(new CodedError("UNAUTHENTICATED", "This token is unknown, expired or revoked."));
}

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- the shape is what each test asserts
  json: any;
}

export interface TestServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly server: Listening;
  /** Lines of the log, parsed. */
  readonly log: Record<string, unknown>[];
  /** Sends bytes unchanged. */
  send(options: RequestOptions & { body?: string | Uint8Array; plain?: boolean }): Promise<Answer>;
  /** Posts a document as a well-behaved client does. */
  graphql(query: string, variables?: unknown, headers?: Record<string, string>): Promise<Answer>;
}

const agent = new Agent({ rejectUnauthorized: false, keepAlive: false });

/** A new HTTPS server on a free port, with a small schema in memory. */
export async function startServer(
  overrides: Partial<AppDeps["config"]> & Partial<AppDeps> = {},
): Promise<TestServer> {
  const {
    production = false,
    trustProxy = false,
    explorer = true,
    ...rest
  } = overrides as AppDeps["config"] & Partial<AppDeps>;
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const context = () => {
    if (faults.context) throw faults.context();
    return {};
  };
  const preset: GraphileConfig.Preset = {
    extends: [transportPreset],
    grafast: { context },
    plat: { introspectionHoldMs: 0 },
  };
  const app = createApp({
    config: { production, trustProxy, explorer },
    log,
    pgl: { createServ: (grafserv) => grafserv({ schema, preset }) as never },
    authenticate,
    schema: () => schema,
    constraintMessages: new Map(),
    ...rest,
  });
  const { cert, key } = await testCertificate();
  const server = await listen(app, { port: 0, host: "127.0.0.1", cert, key });

  const send: TestServer["send"] = ({ body, plain, ...options }) =>
    new Promise((resolve, reject) => {
      const where = {
        host: "127.0.0.1",
        port: server.port,
        path: "/graphql",
        method: "POST",
        agent,
        ...options,
      };
      const request = plain ? httpRequest({ ...where, agent: false }) : httpsRequest(where);
      request.on("error", reject);
      request.on("response", (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString("utf8");
          const { "content-type": type = "", "content-encoding": encoding } = response.headers;
          const isJson = /json/.test(type) && encoding === undefined;
          const json = isJson && text !== "" ? JSON.parse(text) : undefined;
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json });
        });
      });
      request.end(body);
    });

  return {
    url: `https://127.0.0.1:${server.port}`,
    port: server.port,
    server,
    log: lines,
    send,
    graphql: (query, variables, headers = {}) =>
      send({
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ query, variables }),
      }),
    [Symbol.asyncDispose]: () => server.close(0),
  };
}
