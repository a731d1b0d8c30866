import { randomUUID } from "node:crypto";
import type { Attack } from "../attack.ts";

const upsert = `mutation ($input: UpsertLeadsInput!) { upsertLeads(input: $input) { refusedCount rows { outcome lead { id name } errors { message } } } }`;
const update = `mutation ($input: UpdateLeadsInput!) { updateLeads(input: $input) { updatedCount rows { outcome } } }`;

let turn = 0;

/**
 * The maximum number of leads per call: half of them new, half of them refused one by one, then all of them changed.
 */
export default {
  title: "lists of 500 leads, made and changed",
  async play(world) {
    const { attacker, project } = world;
    turn += 1;
    const leads = Array.from({ length: 500 }, (_, n) => ({
      externalId: randomUUID(),
      name: `Storm Lead ${n}`,
      email: n % 2 === 0 ? world.freshEmail() : "storm@example.org",
      company: "ł".repeat(100),
      tags: [`storm ${turn}`],
      metadata: { values: Array.from({ length: 20 }, (_value, i) => i) },
    }));
    const made = await world
      .ask(attacker, upsert, { input: { projectId: project.id, system: `crm-${turn % 4}`, leads } })
      .catch(() => undefined);
    const changed = await world
      .ask(attacker, update, {
        input: { filter: { tags: [`storm ${turn}`] }, addTags: ["changed"], status: "CONTACTED" },
      })
      .catch(() => undefined);
    for (const answer of [made, changed]) {
      const [error] = answer?.errors ?? [];
      if (error && !/^(RATE_LIMITED|LIMIT_EXCEEDED|UNAVAILABLE|CONFLICT)$/.test(error.extensions.code))
        throw new Error(JSON.stringify(error));
    }
  },
} satisfies Attack;
