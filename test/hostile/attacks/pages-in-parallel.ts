import { fullPages } from "../../harness/fullPages.ts";
import type { Attack } from "../attack.ts";

/** Many valid requests of one organization in parallel. */
export default {
  title: "an organization of 1,000 units asks for full pages",
  async prepare(world) {
    await world.owner.query(
      `insert into app_public.units (organization_id, project_id, title, number, price, currency, description)
       select p.organization_id, p.id, 'Unit ' || n, n::text, 400000 + n, 'CAD', rtrim(repeat('A fine home. ', 20))
       from app_public.projects p, generate_series(1, 1000) n where p.id = $1`,
      [world.project.id],
    );
  },
  async play(world, signal) {
    for (const query of Object.values(fullPages)) {
      if (signal.aborted) return;
      const { errors } = await world.ask(world.attacker, query, { project: world.project.id });
      if (errors) throw new Error(JSON.stringify(errors));
    }
  },
} satisfies Attack;
