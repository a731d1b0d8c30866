/**
 * Checks reads for staleness: clients write increasing numbers into leads, and read leads that other clients write. A
 * read is stale if it returns a smaller number than one that had been acknowledged, to any client, before it was sent.
 */
import { Agent } from "node:https";
import { post } from "./load.ts";
import { randomFrom } from "./random.ts";

export interface CheckedReads {
  readonly reads: number;
  readonly writes: number;
  /** One sentence each. */
  readonly stale: readonly string[];
  /** Unexpected responses. */
  readonly failed: readonly string[];
}

interface Options {
  baseUrl: string;
  token: string;
  projectId: string;
  clients: number;
  /** Number of reads. */
  reads: number;
  seed?: number;
  /** One of this number of requests writes. */
  writesEach?: number;
}

const CREATE = "mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }";
const UPDATE = "mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { company } }";
/** Compiled, and planned. */
const READS = [
  "query ($id: ID!) { lead(id: $id) { company } }",
  "query ($id: ID!) { lead(id: $id) { company notes { text } } viewer { id } }",
];

export async function checkReads({
  baseUrl,
  token,
  projectId,
  clients,
  reads,
  seed = 1,
  writesEach = 10,
}: Options): Promise<CheckedReads> {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const headers = { authorization: `Bearer ${token}` };
  const result = { reads: 0, writes: 0, stale: [] as string[], failed: [] as string[] };
  const acknowledged = new Map<string, number>();
  let started = 0;

  const ask = async (query: string, variables: Record<string, unknown>): Promise<any> => {
    const answer = await post(agent, baseUrl, { query, variables }, headers);
    if (answer.errors) result.failed.push(JSON.stringify(answer.errors[0]));
    return answer.errors ? undefined : answer.data;
  };
  const play = async (number: number) => {
    const random = randomFrom(seed * 1_000 + number);
    const email = `reads.${seed}.${number}@load.example`;
    const made = await ask(CREATE, { input: { projectId, name: `Reads ${seed}-${number}`, email } });
    if (!made) return;
    const own: string = made.createLead.id;
    acknowledged.set(own, 0);
    for (let next = 1; started < reads;) {
      if (random(writesEach) === 0) {
        const written = await ask(UPDATE, { input: { id: own, company: `${next}` } });
        if (written) acknowledged.set(own, next);
        next += 1;
        result.writes += 1;
        continue;
      }
      started += 1;
      const leads = [...acknowledged.keys()];
      // Every second read is of a lead that the client itself has written.
      const id = random(2) === 0 ? own : leads[random(leads.length)]!;
      const least = acknowledged.get(id)!;
      const found = await ask(READS[random(READS.length)]!, { id });
      result.reads += 1;
      if (found && Number(found.lead?.company ?? 0) < least)
        result.stale.push(`lead ${id} shows ${found.lead?.company} after ${least}`);
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, number) => play(number)));
  agent.destroy();
  return result;
}
