import { randomInt } from "node:crypto";
import type { Attack } from "../attack.ts";
import { everythingOf } from "../documents.ts";

const names = Array.from({ length: 16 }, (_, n) => `v${n}`);
const parts = everythingOf("Project", 1);
const query = `query (${names.map((name) => `$${name}: Boolean!`).join(" ")}) { publicProjects(first: 1) {
  ${parts.map((part, n) => (n < names.length ? `${part} @include(if: $${names[n]})` : part)).join(" ")} } }`;

/** One document, and another plan for each set of its variables. */
export default {
  title: "one document with a plan for each set of variables",
  async play(world) {
    const bits = randomInt(2 ** names.length);
    const variables = Object.fromEntries(names.map((name, n) => [name, Boolean(bits & (1 << n))]));
    await world.ask(null, query, variables);
  },
} satisfies Attack;
