import type { Pool } from "pg";

/** Events that name a record before the event of its creation, in the same transaction and stream. */
export async function laterCreations(
  owner: Pick<Pool, "query">,
): Promise<{ name: string; member: string; created: string }[]> {
  const { rows } = await owner.query(
    `select distinct e.name, m.key as member, c.name as created
     from app_public.events e
     cross join lateral jsonb_each_text(e.data) m
     join app_public.events c on c.stream_id = e.stream_id and c.transaction_id = e.transaction_id
       and c.sequence > e.sequence and c.name like '%.created' and c.subject_id::text = m.value
     order by 1, 2, 3`,
  );
  return rows;
}
