import type { Pool } from "pg";

/** Events that name another record before the event of its creation, in the same transaction and stream. */
export async function laterCreations(
  owner: Pick<Pool, "query">,
): Promise<{ name: string; member: string }[]> {
  // PERF: created records are looked up in one value per transaction; some tests have thousands of events.
  const { rows } = await owner.query(
    `with created as materialized (
       select c.stream_id, c.transaction_id, jsonb_object_agg(c.subject_id, c.sequence) as places
       from app_public.events c where c.name like '%.created' group by 1, 2)
     select distinct e.name, m.key as member
     from created c
     join app_public.events e using (stream_id, transaction_id)
     cross join lateral jsonb_each_text(e.data) m
     where m.value <> e.subject_id::text and (c.places ->> m.value)::bigint > e.sequence
     order by 1, 2`,
  );
  return rows;
}
