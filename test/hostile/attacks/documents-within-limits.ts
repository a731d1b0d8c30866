import type { Attack } from "../attack.ts";
import { unlikeAnyOther, withinLimits } from "../documents.ts";

const project = `{ publicProjects(first: 1) { ${withinLimits("publicProjects(first: 1)", "Project").join(" ")} } }`;

/** Each takes the maximum allowed time to plan, as a visitor and as a viewer. */
export default {
  title: "distinct documents just within the limits",
  async prepare(world, documents) {
    for (let n = 0; n < documents; n += 1) await world.ask(world.member, unlikeAnyOther(project));
  },
  async play(world) {
    const { errors } = await world.ask(null, unlikeAnyOther(project));
    if (errors?.some(({ extensions }) => extensions.code !== "RATE_LIMITED"))
      throw new Error(JSON.stringify(errors));
    await world.ask(world.attacker, unlikeAnyOther(project));
  },
} satisfies Attack;
