/**
 * A mixed load over HTTPS that creates, changes, annotates, reads and lists leads, and compares the responses with what
 * was written.
 */
import { randomUUID } from "node:crypto";
import { Agent, request } from "node:https";
// oxlint-disable-next-line no-restricted-imports -- pauses between two attempts
import { setTimeout as delay } from "node:timers/promises";
import { randomFrom } from "./random.ts";

export interface LoadOptions {
  /** Returns the current address of the service, which may change with a restart. */
  baseUrl: () => string;
  /** A login token of a user who can write leads. */
  token: string;
  projectId: string;
  clients: number;
  seed: number;
  /**
   * Whether a request without a response, or with UNAVAILABLE, is retried under its idempotency key until it is
   * answered.
   */
  persistent: boolean;
  /** Milliseconds that each client pauses between requests. Default: none. */
  restMs?: number;
}

export interface Load {
  requests: number;
  /** Names of the leads whose creation was acknowledged, by id. */
  acknowledged: Map<string, string>;
  /** Number of retried requests, by their final response. */
  again: Record<string, number>;
  /** Unexpected responses. */
  wrong: string[];
  /**
   * Waits for requests in progress, including retries.
   * @param giveUp whether to stop retrying
   */
  stop(giveUp?: boolean): Promise<void>;
}

interface Answer {
  data?: any;
  errors?: { message: string; extensions?: { code?: string } }[];
}

const pauseMs = 50;
/** How long a request is retried. */
const patienceMs = 120_000;

/**
 * Sends one GraphQL request.
 * @throws Error if the connection is lost before a response, or after 30 seconds.
 */
export function post(
  agent: Agent,
  baseUrl: string,
  body: unknown,
  headers: Record<string, string>,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      `${baseUrl}/graphql`,
      {
        method: "POST",
        agent,
        rejectUnauthorized: false,
        timeout: 30_000,
        headers: { "content-type": "application/json", ...headers },
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => (text += part));
        response.once("error", reject);
        response.once("end", () => {
          try {
            resolve(JSON.parse(text) as Answer);
          } catch (error) {
            reject(error as Error);
          }
        });
      },
    );
    outgoing.once("timeout", () => outgoing.destroy(new Error("No answer within 30 seconds.")));
    outgoing.once("error", reject);
    outgoing.end(JSON.stringify(body));
  });
}

/**
 * Signs in as the owner of the demo organization.
 * @returns a token, and a project with its organization in which leads can be written
 */
export async function signIn(
  baseUrl: string,
): Promise<{ token: string; projectId: string; organizationId: string }> {
  const agent = new Agent({ keepAlive: false });
  const login = await post(
    agent,
    baseUrl,
    {
      query: `mutation { login(input: { username: "demo@plat.example", password: "demo-password" }) { token } }`,
    },
    {},
  );
  const { token } = login.data.login;
  const projects = await post(
    agent,
    baseUrl,
    { query: "{ projects(first: 1) { id organization { id } } }" },
    { authorization: `Bearer ${token}` },
  );
  const [project] = projects.data.projects;
  return { token, projectId: project.id, organizationId: project.organization.id };
}

/** Starts the load, which continues until it is stopped. */
export function startLoad(options: LoadOptions): Load {
  const agent = new Agent({ keepAlive: true, maxSockets: options.clients });
  const load: Omit<Load, "stop"> = { requests: 0, acknowledged: new Map(), again: {}, wrong: [] };
  const state = { stopped: false, givenUp: false };
  const headers = { authorization: `Bearer ${options.token}` };

  const ask = async (query: string, variables: Record<string, unknown>): Promise<any> => {
    const key = randomUUID();
    const end = performance.now() + patienceMs;
    do {
      load.requests++;
      let failed: string;
      try {
        const more: Record<string, string> = query.startsWith("mutation") ? { "idempotency-key": key } : {};
        const answer = await post(agent, options.baseUrl(), { query, variables }, { ...headers, ...more });
        const [error] = answer.errors ?? [];
        if (!error) return answer.data;
        failed = error.extensions?.code ?? "no code";
        if (!options.persistent || failed !== "UNAVAILABLE") {
          load.wrong.push(`${failed}: ${error.message} (${query.slice(0, 60)})`);
          return undefined;
        }
      } catch (error) {
        failed = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
        if (!options.persistent) {
          load.wrong.push(`${failed} (${query.slice(0, 60)})`);
          return undefined;
        }
      }
      load.again[failed] = (load.again[failed] ?? 0) + 1;
      await delay(pauseMs);
    } while (performance.now() < end && !state.givenUp);
    load.wrong.push(`no answer within ${patienceMs} ms (${query.slice(0, 60)})`);
    return undefined;
  };

  const client = async (number: number) => {
    const random = randomFrom(options.seed * 1_000 + number);
    const own: string[] = [];
    while (!state.stopped) {
      const id = own[random(own.length || 1)];
      const turn = random(10);
      if (!id || turn < 3) {
        const name = `Load ${options.seed}-${number}-${own.length}`;
        const data = await ask(
          "mutation ($input: CreateLeadInput!) { createLead(input: $input) { id name } }",
          { input: { projectId: options.projectId, name, email: `${name.replace(" ", ".")}@load.example` } },
        );
        if (!data) continue;
        if (data.createLead.name !== name) load.wrong.push(`createLead answered ${JSON.stringify(data)}`);
        load.acknowledged.set(data.createLead.id, name);
        own.push(data.createLead.id);
      } else if (turn < 5) {
        await ask("mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { id } }", {
          input: { id, company: `Company ${random(1_000)}` },
        });
      } else if (turn < 6) {
        await ask("mutation ($input: CreateLeadNoteInput!) { createLeadNote(input: $input) { id } }", {
          input: { leadId: id, text: `Note ${random(1_000)}` },
        });
      } else if (turn < 8) {
        const data = await ask("query ($id: ID!) { lead(id: $id) { name notes { text } } }", { id });
        if (data && data.lead?.name !== load.acknowledged.get(id))
          load.wrong.push(`lead ${id} answered ${JSON.stringify(data)}`);
      } else {
        const data = await ask(
          "query { leads(first: 20) { id name status } projects(first: 5) { title units(first: 5) { title price } } }",
          {},
        );
        if (data && data.leads.length === 0) load.wrong.push("leads answered none");
      }
      if (options.restMs && !state.stopped) await delay(options.restMs);
    }
  };
  const clients = Array.from({ length: options.clients }, (_, number) => client(number));
  return Object.assign(load, {
    async stop(giveUp = false) {
      state.stopped = true;
      state.givenUp = giveUp;
      await Promise.all(clients);
      agent.destroy();
    },
  });
}
