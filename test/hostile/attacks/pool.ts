import type { Attack } from "../attack.ts";

const long =
  '{ publicProjects(first: 1000, sort: DISTANCE, filter: { query: "e" }) { id abstract { unitsTotal priceMin } units(first: 100, filter: { query: "1" }) { id } } }';

/** Short requests with slow statements: twelve at a time per client. */
export default {
  title: "strangers hold connections of the database",
  async play(world) {
    await Promise.all(Array.from({ length: 12 }, () => world.ask(null, long)));
  },
} satisfies Attack;
