import { getIntrospectionQuery } from "postgraphile/graphql";
import type { Attack } from "../attack.ts";
import { unlikeAnyOther } from "../documents.ts";

/** Repeated queries of the whole schema: the usual query, and new texts. */
export default {
  title: "viewers ask for the whole schema",
  async play(world) {
    await world.ask(world.stranger, getIntrospectionQuery());
    await world.ask(world.attacker, unlikeAnyOther(getIntrospectionQuery()));
  },
} satisfies Attack;
