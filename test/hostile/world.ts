/** Connections of an attack to a running service, for the measuring process and for the thread of the attackers. */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { Pool } from "pg";
import { createLoginTokens } from "../../src/auth/loginToken.ts";
import { demoUser } from "../../src/demo/people.ts";
import { loadOrCreateSecret } from "../../src/secrets/loadOrCreateSecret.ts";
import { password, signUp } from "../harness/signUp.ts";
import type { Answer, Caller, HostileWorld, RequestOptions } from "./attack.ts";

/** The connection data of a world; plain data, so that it can be sent to a thread. */
export type Facts = Pick<
  HostileWorld,
  | "address"
  | "pid"
  | "databaseUrl"
  | "dataDir"
  | "attacker"
  | "member"
  | "stranger"
  | "organization"
  | "project"
  | "bystander"
>;

export interface OpenWorld extends HostileWorld, AsyncDisposable {
  /** Number of requests so far. */
  readonly requests: number;
}

/**
 * @param ending aborted after the time limit, which cancels running requests
 * @param localAddress source address. Default: that of the attackers
 */
export function openWorld(facts: Facts, ending?: AbortSignal, localAddress?: string): OpenWorld {
  const agent = new Agent({
    keepAlive: true,
    rejectUnauthorized: false,
    ...(localAddress && { localAddress }),
  });
  const owner = new Pool({ connectionString: facts.databaseUrl, max: 4 });
  owner.on("error", () => {});
  let requests = 0;
  const send = (path: string, { method = "GET", headers, body, signal }: RequestOptions = {}) =>
    new Promise<Answer>((done, fail) => {
      requests += 1;
      const given = [signal, ending].filter((one) => one !== undefined);
      const outgoing = request(
        `${facts.address}${path}`,
        { method, agent, ...(headers && { headers }), signal: AbortSignal.any(given) },
        (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (part: string) => (text += part));
          response.on("error", fail);
          response.on("end", () => done({ status: response.statusCode!, headers: response.headers, text }));
        },
      );
      outgoing.on("error", fail);
      outgoing.end(body);
    });
  const ask: HostileWorld["ask"] = async (caller, query, variables, options) => {
    const { status, text } = await send("/graphql", {
      ...options,
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(caller && { authorization: `Bearer ${caller.token}` }),
        ...options?.headers,
      },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = JSON.parse(text);
    return { status, data, errors };
  };
  return {
    ...facts,
    owner,
    password,
    request: send,
    ask,
    async get(caller, query, variables) {
      const { data, errors } = await ask(caller, query, variables);
      if (errors) throw new Error(`${query}\n${JSON.stringify(errors, null, 2)}`);
      return data;
    },
    signUp: async (name = "Storm Somebody") => signUpWith(owner, facts.dataDir, name),
    freshEmail: () => `${randomUUID()}@example.org`,
    get requests() {
      return requests;
    },
    async [Symbol.asyncDispose]() {
      agent.destroy();
      await owner.end();
    },
  };
}

const signUpWith = async (owner: Pool, dataDir: string, name: string): Promise<Caller> =>
  signUp(owner, name, await signer(dataDir), `${randomUUID()}.example.org`);

/** Signs login tokens with the keys of that service. */
async function signer(dataDir: string): Promise<(claims: string) => string> {
  const tokens = createLoginTokens([{ kid: "local", secret: await loadOrCreateSecret(dataDir, "jwt.key") }]);
  return (claims) => tokens.sign(JSON.parse(claims));
}

/** The owner's connection to the embedded database of a data folder. */
async function embeddedUrl(dataDir: string): Promise<string> {
  const lines = (await readFile(join(dataDir, "postgres", "data", "postmaster.pid"), "utf8")).split("\n");
  return `postgres://plat:${await loadOrCreateSecret(dataDir, "postgres.password")}@127.0.0.1:${lines[3]}/plat`;
}

/** Creates the attackers and their organization in a service with the demo. */
export async function factsOf(service: { baseUrl: string; pid: number }, dataDir: string): Promise<Facts> {
  const databaseUrl = await embeddedUrl(dataDir);
  const owner = new Pool({ connectionString: databaseUrl, max: 2 });
  try {
    const people = ["Storm Owner", "Storm Member", "Storm Stranger"];
    const callers: Caller[] = [];
    for (const name of people) callers.push(await signUpWith(owner, dataDir, name));
    const [attacker, member, stranger] = callers as [Caller, Caller, Caller];
    const address = new URL(service.baseUrl);
    address.hostname = "127.0.0.1";
    const facts = {
      address: address.origin,
      pid: service.pid,
      databaseUrl,
      dataDir,
      attacker,
      member,
      stranger,
    };
    const none = { id: "", slug: "" };
    const nobody = { id: "", email: "", token: "" };
    await using world = openWorld({ ...facts, bystander: nobody, organization: none, project: none });
    const { login } = await world.get(
      null,
      "mutation ($input: LoginInput!) { login(input: $input) { token user { id } } }",
      { input: { username: demoUser.email, password: demoUser.password } },
    );
    const bystander = { id: login.user.id, email: demoUser.email, token: login.token };
    const { createOrganization: organization } = await world.get(
      attacker,
      "mutation ($input: CreateOrganizationInput!) { createOrganization(input: $input) { id slug } }",
      { input: { name: "Storm Homes" } },
    );
    await owner.query(
      "insert into app_public.organization_user_connections (organization_id, user_id, role) values ($1, $2, 'MEMBER')",
      [organization.id, member.id],
    );
    const { createProject: project } = await world.get(
      attacker,
      "mutation ($input: CreateProjectInput!) { createProject(input: $input) { id slug } }",
      {
        input: {
          organizationId: organization.id,
          title: "Storm Towers",
          status: "SELLING",
          currency: "CAD",
          address: { locality: "Toronto", country: "CA" },
        },
      },
    );
    return { ...facts, bystander, organization, project };
  } finally {
    await owner.end();
  }
}
