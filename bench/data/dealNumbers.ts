/**
 * Reservations and agreements for the leads of an organization. Triggers are disabled, so all columns are filled
 * here.
 */
import type { Client } from "pg";

/** Inserts a number of both for an organization created by loadPortfolios; `client` is the owner's connection. */
export async function loadDealNumbers(client: Client, organizationId: string, amount: number): Promise<void> {
  await client.query(
    "begin; set local session_replication_role = replica; set local synchronous_commit = off",
  );
  const number = (letter: string) =>
    `'${letter}-' || lpad((row_number() over (partition by l.project_id))::text, 6, '0')`;
  const leads = `(select l.*, n, row_number() over () as place from app_public.leads l, generate_series(1, 1 + $2::int / (
     select greatest(1, count(*)) from app_public.leads where organization_id = $1)) n where l.organization_id = $1 limit $2) l`;
  await client.query(
    `insert into app_public.reservations (organization_id, project_id, unit_id, lead_id, assignee_id, number, price, list_price_snapshot,
       currency, status, accepted_terms, expiration)
     select l.organization_id, l.project_id, uuidv7(), l.id, l.assignee_id, ${number("R")}, 1, 1, 'CAD', 'EXPIRED', true, 48 from ${leads}`,
    [organizationId, amount],
  );
  await client.query(
    `insert into app_public.agreements (organization_id, project_id, lead_id, buyer_id, type, title, status, number)
     select l.organization_id, l.project_id, case when l.place % 2 = 0 then l.id end, case when l.place % 2 = 1 then uuidv7() end, 'OTHER',
       'Contract', 'SENT', ${number("A")} from ${leads}`,
    [organizationId, amount],
  );
  await client.query("commit");
  await client.query("analyze app_public.reservations; analyze app_public.agreements");
}
