import type { Attack } from "../attack.ts";
import { makeLead } from "../workflow.ts";

/** The assignment of a lead by turns in a transaction that stays open must not block the next ones. */
export default {
  title: "leads of a project whose members take turns, one of which is not committed",
  async prepare({ owner, project }) {
    await owner.query("update app_public.projects set lead_assignment = 'ROUND_ROBIN' where id = $1", [
      project.id,
    ]);
  },
  async play(world) {
    const client = await world.owner.connect();
    try {
      await client.query("begin");
      await client.query("insert into app_public.leads (project_id, name) values ($1, 'On its way')", [
        world.project.id,
      ]);
      for (let n = 0; n < 4; n += 1) await makeLead(world);
    } finally {
      await client.query("rollback");
      client.release();
    }
  },
} satisfies Attack;
