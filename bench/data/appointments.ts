import type { Client } from "pg";
import { withoutIndexes } from "./portfolios.ts";

/**
 * Inserts `perLead` appointments for each lead of every organization: one per hour, in all states. The host of
 * completed ones is the assignee of the lead. Triggers are disabled; `client` is the owner's connection.
 */
export async function loadAppointments(client: Client, perLead: number): Promise<void> {
  await client.query("set session_replication_role = replica; set synchronous_commit = off");
  await withoutIndexes(client, ["app_public.appointments"], async () => {
    await client.query(
      `insert into app_public.appointments (organization_id, project_id, lead_id, assignee_id, type, status, starts_at, ends_at, time_zone, host_id)
     select l.organization_id, l.project_id, l.id, l.assignee_id, (array['IN_PERSON_TOUR', 'PHONE', 'SALES_MEETING', 'CLOSING'])[1 + n % 4], s.status,
       now() - make_interval(hours => (n % 20000)::int, secs => (n % 3600)::int), now() - make_interval(hours => (n % 20000)::int, secs => (n % 3600)::int) + interval '1 hour',
       'America/Toronto', case when s.status = 'COMPLETED' then l.assignee_id end
     from (select l.*, row_number() over (order by l.id) * 7919 + k * 104729 as n from app_public.leads l, generate_series(1, $1::int) k) l
     cross join lateral (select (array['REQUESTED', 'SCHEDULED', 'CONFIRMED', 'COMPLETED', 'COMPLETED', 'COMPLETED', 'NO_SHOW', 'RESCHEDULED', 'CANCELLED', 'COMPLETED'])[1 + l.n % 10] as status) s`,
      [perLead],
    );
  });
  await client.query("reset session_replication_role");
  await client.query("vacuum (analyze) app_public.appointments");
}
