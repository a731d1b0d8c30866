/**
 * Causes a failure under a load of readers and writers. Reports what they observed, their waiting times, the time of
 * recovery, and acknowledged changes that were lost.
 */
import { Agent, request } from "node:https";
// oxlint-disable-next-line no-restricted-imports -- how often callers and a balancer ask
import { setTimeout as pause } from "node:timers/promises";
import type { Pool } from "pg";
import { until } from "../harness/until.ts";

export interface Played {
  /** URL of the service. */
  baseUrl: string;
  /** URL of MONITORING. */
  monitoring: string;
  /** A login token of a user who may write leads. */
  token: string;
  projectId: string;
  /** Connections of the owner of the database, which the failure does not affect. */
  owner: () => Pick<Pool, "query">;
}

export interface Fault {
  name: string;
  begin(): unknown;
  end(): unknown;
  /** Milliseconds that the failure lasts after it was detected. */
  lastsMs: number;
  /** Condition for the start of its duration. Default: none. */
  seen?: (outcome: Readonly<Outcome>) => boolean;
}

export interface Outcome {
  /** Requests from the beginning to the end of the failure. */
  attempts: number;
  /** Number of readers and writers by response: `200`, or such as `200 UNAVAILABLE, Retry-After: 5`. */
  readers: Record<string, number>;
  writers: Record<string, number>;
  longestMs: number;
  /** Failed checks of /readyz. */
  red: string[];
  /** Milliseconds from the end of the failure until a read, a write and /readyz succeed again. */
  backAfterMs: number;
  /** Acknowledged leads that do not exist afterwards. */
  lost: number;
}

const callers = 2;
/** Pause between two requests of a client. */
const pauseMs = 25;

interface Answer {
  reply: string;
  id: string | undefined;
}

function send(agent: Agent, { baseUrl, token }: Played, body: object): Promise<Answer> {
  return new Promise((resolve) => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
    const options = { method: "POST", agent, rejectUnauthorized: false, headers };
    request(`${baseUrl}/graphql`, options, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("error", ({ message }) => resolve({ reply: message, id: undefined }));
      response.on("end", () => {
        const { data, errors } = JSON.parse(text);
        const code = errors?.[0].extensions.code;
        const wait = response.headers["retry-after"];
        const reply = [
          `${response.statusCode}${code ? ` ${code}` : ""}`,
          ...(wait ? [`Retry-After: ${wait}`] : []),
        ];
        resolve({ reply: reply.join(", "), id: data?.createLead?.id });
      });
    })
      .once("error", ({ message }) => resolve({ reply: message, id: undefined }))
      .end(JSON.stringify(body));
  });
}

/** Causes one failure. Responses are counted from its beginning to its end. */
export async function play(played: Played, fault: Fault): Promise<Outcome> {
  const agent = new Agent({ keepAlive: true });
  const outcome: Outcome = {
    attempts: 0,
    readers: {},
    writers: {},
    longestMs: 0,
    red: [],
    backAfterMs: 0,
    lost: 0,
  };
  const acknowledged: string[] = [];
  const state = { on: true, counts: false };
  /** The time at which the last successful request was sent. */
  const well = { readers: 0, writers: 0, ready: 0 };
  const red = new Set<string>();

  const call = async (who: "readers" | "writers", number: number) => {
    for (let n = 0; state.on; n += 1) {
      const sentAt = performance.now();
      const counts = state.counts;
      const input = { projectId: played.projectId, name: `${fault.name} ${number}-${n}` };
      const body =
        who === "writers"
          ? {
              query: "mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }",
              variables: { input },
            }
          : { query: "{ leads(first: 5) { id name } }" };
      const { reply, id } = await send(agent, played, body);
      if (id) acknowledged.push(id);
      if (reply === "200") well[who] = sentAt;
      if (counts) {
        outcome.attempts += 1;
        outcome[who][reply] = (outcome[who][reply] ?? 0) + 1;
        outcome.longestMs = Math.max(outcome.longestMs, Math.round(performance.now() - sentAt));
      }
      await pause(pauseMs);
    }
  };
  const checkReadiness = async () => {
    while (state.on) {
      const sentAt = performance.now();
      const counts = state.counts;
      const response = await fetch(`${played.monitoring}/readyz`);
      const { checks } = (await response.json()) as { checks: Record<string, boolean> };
      if (response.status === 200) well.ready = sentAt;
      else if (counts) for (const [name, passes] of Object.entries(checks)) if (!passes) red.add(name);
      await pause(100);
    }
  };
  const running = [
    checkReadiness(),
    ...Array.from({ length: callers }, (_, n) => [call("readers", n), call("writers", n)]).flat(),
  ];
  // Failed clients are reported at the end.
  for (const one of running) one.catch(() => {});
  const isWell = (since: number) => Object.values(well).every((at) => at > since);
  try {
    await until(() => isWell(0));
    state.counts = true;
    await fault.begin();
    const { seen = () => true } = fault;
    await until(
      () => ({ ...outcome, red: [...red] }),
      (now) => seen(now),
      { withinMs: 60_000 },
    );
    await pause(fault.lastsMs);
    state.counts = false;
  } finally {
    await fault.end();
    const endedAt = performance.now();
    try {
      await until(
        () => ({ ...well, endedAt }),
        () => isWell(endedAt),
        { withinMs: 60_000 },
      );
      outcome.backAfterMs = Math.round(performance.now() - endedAt);
    } finally {
      state.on = false;
      await Promise.all(running);
      agent.destroy();
    }
  }
  outcome.red = [...red].toSorted();
  const { rows } = await played
    .owner()
    .query<{ id: string }>("select id from app_public.leads where id = any ($1)", [acknowledged]);
  outcome.lost = acknowledged.length - rows.length;
  return outcome;
}
