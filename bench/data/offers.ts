/** Ten offers for each lead of an organization. Triggers are disabled, so all columns are filled here. */
import type { Client } from "pg";
import { withoutIndexes } from "./portfolios.ts";

/** Inserts offers for an organization created by loadPortfolios. */
export async function loadOffers(
  client: Client,
  organizationId: string,
  amount: number,
  { analyze = true } = {},
): Promise<void> {
  await client.query(
    "begin; set local session_replication_role = replica; set local synchronous_commit = off",
  );
  await client.query(
    `insert into app_public.units (organization_id, project_id, title, status, price, currency)
     select $1, p.ids[1 + n % cardinality(p.ids)], 'Home ' || n, 'AVAILABLE', 400000 + n, 'CAD'
     from generate_series(1, greatest(10, $2::int / 20)) n,
       (select array_agg(id order by id) as ids from app_public.projects where organization_id = $1) p`,
    [organizationId, amount],
  );
  await client.query(
    `insert into app_public.negotiations (organization_id, project_id, unit_id, lead_id, assignee_id, status, list_price, currency)
     select l.organization_id, l.project_id, u.ids[1 + l.n % cardinality(u.ids)], l.id, l.assignee_id, 'REJECTED', 400000, 'CAD'
     from (select l.*, row_number() over (order by l.id) as n from app_public.leads l where l.organization_id = $1 order by l.id limit $2) l
     join (select project_id, array_agg(id) as ids from app_public.units where organization_id = $1 group by 1) u on u.project_id = l.project_id`,
    [organizationId, Math.ceil(amount / 10)],
  );
  await withoutIndexes(client, ["app_public.offers"], async () => {
    await client.query(
      `insert into app_public.offers (organization_id, project_id, negotiation_id, round, sequence, side, kind, status, price, currency, expires_at,
       unit_id, lead_id, assignee_id, legal_name, manual, inserted_at, number)
     select n.organization_id, n.project_id, n.id, 1, i, case when i % 2 = 0 then 'SELLER' else 'BUYER' end, case i when 1 then 'OFFER' else 'COUNTER_OFFER' end,
       case when i < 10 then 'COUNTERED' when n.number % 3 = 0 then 'PENDING' when n.number % 3 = 1 then 'REJECTED' else 'EXPIRED' end,
       380000 + i, 'CAD', now() + interval '1 year', n.unit_id, n.lead_id, n.assignee_id, 'Lena Lead', i % 2 = 1, now() - interval '2 years' * random(),
       'O-' || lpad((row_number() over (partition by n.project_id))::text, 6, '0')
     from (select n.*, row_number() over (order by n.id) as number from app_public.negotiations n where n.organization_id = $1) n, generate_series(1, 10) i`,
      [organizationId],
    );
  });
  await client.query("commit");
  if (analyze)
    await client.query(
      "analyze app_public.units; analyze app_public.negotiations; analyze app_public.offers",
    );
}
