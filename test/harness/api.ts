import { mkdtemp, rm } from "node:fs/promises";
import { Agent, request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pool } from "pg";
import { onStatement } from "../../src/database/statementEvents.ts";
import { createTestDatabase, poolOf, type TestDatabase } from "./database.ts";
import type { HostOptions, DocumentCache } from "./host.ts";
import { laterCreations } from "./laterCreations.ts";
import { signUp } from "./signUp.ts";

/** A response of the endpoint. */
export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  data: any;
  errors: { message: string; path?: (string | number)[]; extensions: Record<string, any> }[] | undefined;
  extensions?: any;
}

export interface AskOptions {
  /** Further headers of the request. */
  headers?: Record<string, string>;
  /** Aborts the request. */
  signal?: AbortSignal;
}

/** A client of the API. */
export interface Person {
  /** Their id; null for an anonymous visitor. */
  id: string | null;
  email: string | null;
  token: string | null;
  /** Sends a document and returns the entire response, errors included. */
  ask(query: string, variables?: Record<string, unknown>, options?: AskOptions): Promise<Answer>;
  /** Sends a document and returns its data; throws if the response has errors. */
  get(query: string, variables?: Record<string, unknown>): Promise<any>;
  /** The same for a visitor: fields that require a token may be null. */
  sees(query: string, variables?: Record<string, unknown>): Promise<any>;
  /** Sends a document that must be refused; returns the extensions of the first error. */
  refused(
    query: string,
    variables?: Record<string, unknown>,
  ): Promise<Record<string, any> & { message: string }>;
}

export interface Api {
  url: string;
  database: TestDatabase;
  /** The folder of files: uploads are received in `incoming` and stored in `files`. */
  dataDir: string;
  /** Connections of the owner, to whom no policy applies. */
  owner: Pool;
  anonymous: Person;
  /** Creates an account with a confirmed address and signs in, with the functions that the API calls. */
  signUp(name: string): Promise<Person>;
  /** A client with the given token. */
  person(token: string, id?: string | null): Person;
  /** Sends a body unchanged. */
  post(body: string, headers: Record<string, string>): Promise<Answer>;
  /** The cache of documents and plans of the API; test files that run in the same process share it. */
  documentCache(): Promise<DocumentCache>;
  /** Counts the SQL statements that `work` sends. */
  statements<T>(work: () => Promise<T>): Promise<{ result: T; count: number; texts: string[] }>;
  stop(): Promise<void>;
}

/** The key with which the API under test signs login tokens. */
export const jwtKeys = [{ kid: "test", secret: "a secret of the tests with at least 32 characters" }];

/** The base URL that the API under test is configured with. */
export const baseUrl = "https://plat.example";

declare global {
  /** Loads the modules of the API; see environment.ts. Benchmarks run in one realm and do not need this. */
  var platHost: (() => Promise<typeof import("./host.ts")>) | undefined;
}

/** The key with which the API under test seals secrets. */
export const secretKeys = [{ kid: "test", secret: "a key of the tests with at least 32 characters" }];

/** Starts the real API over HTTPS, on a database of the test file. */
export async function startApi(from?: TestDatabase, hostOptions: HostOptions = {}): Promise<Api> {
  const database = from ?? (await createTestDatabase());
  const dataDir = await mkdtemp(join(tmpdir(), "plat-files-"));
  const host = await (globalThis.platHost?.() ?? import("./host.ts"));
  const serving = await host.serve(database.authenticatorUrl, !from, dataDir, hostOptions);
  const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
  const owner = poolOf(database.ownerUrl, 4);
  const url = `https://127.0.0.1:${serving.port}/graphql`;

  const post = (body: string, headers: Record<string, string>, signal?: AbortSignal): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const outgoing = request(
        url,
        { method: "POST", agent, headers, ...(signal ? { signal } : {}) },
        (response) => {
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (chunk) => (text += chunk));
          response.on("error", reject);
          response.on("end", () => {
            const { data, errors, extensions } = JSON.parse(text);
            resolve({ status: response.statusCode!, headers: response.headers, data, errors, extensions });
          });
        },
      );
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  const send = (
    token: string | null,
    query: string,
    variables?: Record<string, unknown>,
    { headers, signal }: AskOptions = {},
  ) =>
    post(
      JSON.stringify({ query, variables }),
      {
        ...headers,
        "content-type": "application/json",
        ...(token ? { authorization: `Bearer ${token}` } : {}),
      },
      signal,
    );

  const person = (token: string | null, id: string | null = null, email: string | null = null): Person => {
    const ask: Person["ask"] = (query, variables, further) => send(token, query, variables, further);
    return {
      id,
      email,
      token,
      ask,
      async get(query, variables) {
        const answer = await ask(query, variables);
        if (answer.errors) throw new Error(`${query}\n${JSON.stringify(answer.errors, null, 2)}`);
        return answer.data;
      },
      async sees(query, variables) {
        const { data, errors = [] } = await ask(query, variables);
        const takesToken = ({ extensions }: { extensions: Record<string, any> }) =>
          token === null && extensions.code === "UNAUTHENTICATED";
        if (!errors.every(takesToken)) throw new Error(`${query}\n${JSON.stringify(errors, null, 2)}`);
        return data ?? {};
      },
      async refused(query, variables) {
        const answer = await ask(query, variables);
        const [error] = answer.errors ?? [];
        if (!error) throw new Error(`Not refused: ${query}\n${JSON.stringify(answer.data)}`);
        return { ...error.extensions, message: error.message };
      },
    };
  };
  const anonymous = person(null);
  // PERF: executed one after the other, they use one connection, on which the functions are compiled once.
  let signedUp: Promise<unknown> = Promise.resolve();

  return {
    url,
    database,
    dataDir,
    owner,
    anonymous,
    person,
    post,
    async signUp(name) {
      const account = signedUp.then(() => signUp(owner, name, host.signLoginToken));
      signedUp = account.catch(() => {});
      const { id, email, token } = await account;
      return person(token, id, email);
    },
    async statements(work) {
      const texts: string[] = [];
      const stop = onStatement((text) => texts.push(text));
      try {
        const result = await work();
        // The permissions of a token are looked up once for each of its versions, not for each request.
        const count = texts.filter((text) => !text.includes("app_private.access_of(")).length;
        return { result, count, texts };
      } finally {
        stop();
      }
    },
    documentCache: serving.documentCache,
    async stop() {
      agent.destroy();
      await serving.stop();
      try {
        const misplaced = await laterCreations(owner);
        if (misplaced.length > 0)
          throw new Error(`Events name records before their creation: ${JSON.stringify(misplaced)}`);
      } finally {
        await owner.end();
        if (!from) await database.drop();
        await rm(dataDir, { recursive: true, force: true });
      }
    },
  };
}
