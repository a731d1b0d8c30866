import type { Attack } from "../attack.ts";

const body = (value: string) => `{"query":"query ($a: [ID!]) { viewer { id } }","variables":{"a":${value}}}`;
const bodies = [
  body(`[${"1,".repeat(4_900_000)}1]`),
  body(`[${"{},".repeat(3_200_000)}1]`),
  body(`{${'"a":[],'.repeat(1_350_000)}"b":1}`),
  body("[".repeat(9_000_000)),
  body(`"${'\\"'.repeat(4_900_000)}"`),
  body(`[${"1,".repeat(240_000)}1]`),
];
let turn = 0;

/** Each byte becomes an object of a hundred bytes, and a large body blocks the event loop while it is parsed. */
export default {
  title: "10 MB of JSON with as many values as fit",
  async play(world) {
    const answer = await world.request("/graphql", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${world.attacker.token}` },
      body: bodies[turn++ % bodies.length]!,
    });
    if (![200, 400, 429].includes(answer.status)) throw new Error(`${answer.status}: ${answer.text}`);
  },
} satisfies Attack;
