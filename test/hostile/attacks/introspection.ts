import { getIntrospectionQuery } from "postgraphile/graphql";
import type { Attack } from "../attack.ts";
import { unlikeAnyOther } from "../documents.ts";

/** The whole schema, again and again: as everybody asks for it, and in a text that is new. */
export default {
  title: "viewers ask for the whole schema",
  async play(world) {
    await world.ask(world.stranger, getIntrospectionQuery());
    await world.ask(world.attacker, unlikeAnyOther(getIntrospectionQuery()));
  },
} satisfies Attack;
