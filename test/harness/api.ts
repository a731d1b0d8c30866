import { mkdtemp, rm } from "node:fs/promises";
import { Agent, request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pool } from "pg";
import { onStatement } from "../../src/database/statementEvents.ts";
import { createTestDatabase, poolOf, type TestDatabase } from "./database.ts";
import type { HostOptions, KeptDocuments } from "./host.ts";
import { signUp } from "./signUp.ts";

/** An answer of the endpoint. */
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
  /** Gives the request up, whatever the server makes of it. */
  signal?: AbortSignal;
}

/** Somebody who asks the API. */
export interface Person {
  /** Their id; null for an anonymous visitor. */
  id: string | null;
  email: string | null;
  token: string | null;
  /** Sends a document and gives the whole answer, errors included. */
  ask(query: string, variables?: Record<string, unknown>, options?: AskOptions): Promise<Answer>;
  /** Sends a document that has to succeed; throws with the errors otherwise. */
  get(query: string, variables?: Record<string, unknown>): Promise<any>;
  /** The same, where a visitor without a token finds null in what takes one. */
  sees(query: string, variables?: Record<string, unknown>): Promise<any>;
  /** Sends a document that has to be refused; gives the extensions of its first error. */
  refused(
    query: string,
    variables?: Record<string, unknown>,
  ): Promise<Record<string, any> & { message: string }>;
}

export interface Api {
  url: string;
  database: TestDatabase;
  /** Files are kept in its folder `files`, on their way in in `incoming`. */
  dataDir: string;
  /** The owner's connection: no policy holds for it. */
  owner: Pool;
  anonymous: Person;
  /** Makes an account with a confirmed address and signs in, by the functions that the API calls. */
  signUp(name: string): Promise<Person>;
  /** Somebody with a token of their own. */
  person(token: string, id?: string | null): Person;
  /** Sends a body as it is. */
  post(body: string, headers: Record<string, string>): Promise<Answer>;
  /** What the API keeps of documents and their plans; test files that run after each other share it. */
  keptDocuments(): Promise<KeptDocuments>;
  /** How many SQL statements the work sent. */
  statements<T>(work: () => Promise<T>): Promise<{ result: T; count: number; texts: string[] }>;
  stop(): Promise<void>;
}

/** What the API under test signs login tokens with. */
export const jwtKeys = [{ kid: "test", secret: "a secret of the tests with at least 32 characters" }];

/** The address that it believes to have. */
export const baseUrl = "https://plat.example";

declare global {
  /** Loads what serves the API; see environment.ts. Benches, which run in one realm, do without. */
  var platHost: (() => Promise<typeof import("./host.ts")>) | undefined;
}

/** What the API under test seals secrets with. */
export const secretKeys = [{ kid: "test", secret: "a key of the tests with at least 32 characters" }];

/** The real API over HTTPS, on a database of the test file's own. */
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
  // PERF: one after the other they need one connection, on which the functions are compiled once.
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
        // What a token may do is looked up once for each of its versions, not for each request.
        const count = texts.filter((text) => !text.includes("app_private.access_of(")).length;
        return { result, count, texts };
      } finally {
        stop();
      }
    },
    keptDocuments: serving.keptDocuments,
    async stop() {
      agent.destroy();
      await serving.stop();
      await owner.end();
      if (!from) await database.drop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
