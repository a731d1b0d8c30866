/**
 * Tasks for the existing leads, as inserted by portfolios.ts. Triggers are disabled, so all columns are filled here.
 */
import type { Client } from "pg";
import { withoutIndexes } from "./portfolios.ts";

/**
 * Inserts `each` tasks per lead. Most are completed, one in fifty is open; one in ten has no due date. One lead in a
 * hundred has one more, which belongs to the organization only. The assignee of a lead has its tasks.
 */
export async function loadTasks(client: Client, { each }: { each: number }): Promise<void> {
  await client.query("set session_replication_role = replica; set synchronous_commit = off");
  await withoutIndexes(client, ["app_public.tasks"], async () => {
    await client.query(
      `insert into app_public.tasks (organization_id, project_id, lead_id, title, status, assignee_id, due_at)
       select l.organization_id, case when n.n > 0 then l.project_id end, case when n.n > 0 then l.id end, 'Call ' || l.name,
         case when s.place % 50 = 0 then (array['OPEN', 'IN_PROGRESS', 'WAITING'])[1 + s.place / 50 % 3]
           when s.place % 400 = 1 then 'CANCELLED' else 'COMPLETED' end,
         l.assignee_id, case when s.place % 10 <> 3 then now() + (s.place % 2000 - 1990) * interval '1 hour' end
       from (select l.*, row_number() over (order by l.id) as number from app_public.leads l) l
       cross join lateral (select n from generate_series(case when l.number % 100 = 7 then 0 else 1 end, $1::int) n) n
       cross join lateral (select (l.number * 7919 + n.n * 104729) % 1000003 as place) s`,
      [each],
    );
  });
  await client.query("reset session_replication_role");
  await client.query("vacuum (analyze) app_public.tasks");
}
