import type { Attack } from "../attack.ts";
import { everythingOf, unlikeAnyOther } from "../documents.ts";

const project = `{ publicProjects(first: 1) { ${everythingOf("Project", 1).join(" ")} } }`;

/** Each is as long to plan as is allowed, as a stranger, and as a viewer. */
export default {
  title: "distinct documents just within the limits",
  async play(world) {
    const { errors } = await world.ask(null, unlikeAnyOther(project));
    if (errors?.some(({ extensions }) => extensions.code !== "RATE_LIMITED"))
      throw new Error(JSON.stringify(errors));
    await world.ask(world.attacker, unlikeAnyOther(project));
  },
} satisfies Attack;
