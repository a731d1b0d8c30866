import { randomInt } from "node:crypto";
import type { Attack, HostileWorld } from "../attack.ts";
import { withinLimits } from "../documents.ts";

const names = Array.from({ length: 16 }, (_, n) => `v${n}`);
const parts = withinLimits("publicProjects(first: 1)", "Project");
const query = `query (${names.map((name) => `$${name}: Boolean!`).join(" ")}) { publicProjects(first: 1) {
  ${parts.map((part, n) => (n < names.length ? `${part} @include(if: $${names[n]})` : part)).join(" ")} } }`;

function ask(world: HostileWorld) {
  const bits = randomInt(2 ** names.length);
  const variables = Object.fromEntries(names.map((name, n) => [name, Boolean(bits & (1 << n))]));
  return world.ask(null, query, variables);
}

/** One document, with a different plan for each set of variables. */
export default {
  title: "one document with a plan for each set of variables",
  async prepare(world, documents) {
    for (let n = 0; n < documents; n += 1) await ask(world);
  },
  async play(world) {
    const { errors } = await ask(world);
    if (errors) throw new Error(JSON.stringify(errors));
  },
} satisfies Attack;
