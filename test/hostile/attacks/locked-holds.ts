import type { Attack, HostileWorld } from "../attack.ts";

const amount = 40;
let turns = 0;

/** Units of the attackers' project with expired holds. */
async function overdueUnits({ owner, project }: HostileWorld): Promise<string[]> {
  const { rows } = await owner.query<{ id: string }>(
    `insert into app_public.units (project_id, title, number, status, price)
     select $1, 'Held', $2 || ' ' || n, 'AVAILABLE', 1 from generate_series(1, $3::int) n returning id`,
    [project.id, `held ${process.pid} ${(turns += 1)} ${Math.random()}`, amount],
  );
  const ids = rows.map(({ id }) => id);
  await owner.query(
    "select app_private.take_claim(id, null, 'HOLD', 'hold', uuidv7(), clock_timestamp() + interval '30 ms') from unnest($1::uuid[]) id",
    [ids],
  );
  return ids;
}

/**
 * Expired records are locked by a transaction that stays open, such as an import, so that all statements find them
 * due.
 */
export default {
  title: "holds that are over stay locked by a transaction that goes on",
  async play(world, signal) {
    const ids = await overdueUnits(world);
    const client = await world.owner.connect();
    try {
      await client.query("begin");
      await client.query("select from app_public.units where id = any ($1) order by id for update", [ids]);
      for (let requests = 0; requests < 5 && !signal.aborted; requests += 1) {
        const { errors } = await world.ask(
          world.attacker,
          "query ($id: ID!) { project(id: $id) { units(first: 50) { id status } } }",
          { id: world.project.id },
        );
        if (errors) throw new Error(JSON.stringify(errors));
      }
    } finally {
      await client.query("rollback");
      client.release();
    }
  },
} satisfies Attack;
