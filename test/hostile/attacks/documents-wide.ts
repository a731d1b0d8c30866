import type { Attack } from "../attack.ts";
import { everythingOf, unlikeAnyOther } from "../documents.ts";

const part = everythingOf("Project", 1).join(" ");
const wide = `{ publicProjects(first: 1) { ${part} } recentlySoldUnits(first: 1) { ${everythingOf("Unit", 1).join(" ")} } }`;

/** Their cost is low, but each takes long to plan and megabytes to cache. */
export default {
  title: "a stranger sends wide documents, each another one",
  async play(world) {
    await world.ask(null, unlikeAnyOther(wide));
  },
} satisfies Attack;
