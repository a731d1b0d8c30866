import type { Attack } from "../attack.ts";

const queries = [
  // Reads much.
  "{ publicProjects(first: 1000) { id overview units { id title description project { id overview units { id title description } } } } }",
  // Reads little, and repeats it in the response.
  `{ publicProjects(first: 100) { ${Array.from({ length: 5 }, (_, n) => `u${n}: units { ${Array.from({ length: 5 }, (__, m) => `p${m}: project { id title overview metadata amenities }`).join(" ")} }`).join(" ")} } }`,
  "{ publicProjects(first: 20) { units { project { units { project { units { id title } } } } } } }",
];

/** Large responses are refused, or cut while they are written. */
export default {
  title: "strangers and members ask for the largest answers",
  async play(world, signal) {
    for (const query of queries)
      for (const caller of [null, world.attacker]) {
        if (signal.aborted) return;
        await world.ask(caller, query);
      }
  },
} satisfies Attack;
