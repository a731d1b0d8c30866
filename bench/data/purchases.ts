/**
 * A purchase for each existing lead, as inserted by portfolios.ts. Triggers are disabled, so all columns are filled
 * here.
 */
import type { Client } from "pg";
import { withoutIndexes } from "./portfolios.ts";

/** @param viewers the user who has accepted the invitation to one of the purchases */
export async function loadPurchases(client: Client, viewers: { buyer: string }): Promise<void> {
  await client.query("set session_replication_role = replica; set synchronous_commit = off");
  await withoutIndexes(client, ["app_public.buyers"], async () => {
    await client.query(
      `insert into app_public.buyers (organization_id, project_id, lead_id, first_name, last_name, email, phone, status, currency, price,
       assignee_id, purchase_date, fallout_reason_id)
     select l.organization_id, l.project_id, l.id, split_part(l.name, ' ', 1), split_part(l.name, ' ', 2), l.email, l.phone,
       (array['DRAFT','OUT_FOR_SIGNATURE','IN_REVIEW','CONDITIONAL','FIRM','CLEAR_TO_CLOSE','CLOSED','CLOSED'])[1 + (row_number() over (order by l.id)) % 8],
       'CAD', 400000, l.assignee_id, current_date, null
     from app_public.leads l`,
    );
  });
  await client.query(
    `update app_public.buyers b set user_id = $1 where b.id = (select id from app_public.buyers order by id limit 1 offset 77)`,
    [viewers.buyer],
  );
  await client.query("reset session_replication_role");
  await client.query("vacuum (analyze) app_public.buyers");
}
