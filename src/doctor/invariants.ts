import type { ClientBase, Pool } from "pg";

/** Invariants of deals: description of the rule → query for rows that violate it. */
const invariants: Readonly<Record<string, string>> = {
  "a unit is claimed exactly as its status says": `
    select u.id, u.status, c.kind, c.subject_type from app_public.units u
    left join app_hidden.claims c on c.unit_id = u.id and c.released_at is null
    where u.deleted_at is null and case u.status
      when 'HELD' then c.kind is distinct from 'HOLD'
      when 'RESERVED' then c.kind is distinct from 'RESERVATION'
      when 'PENDING' then c.id is null or c.kind = 'HOLD'
      when 'SOLD' then c.kind is distinct from 'PURCHASE'
      when 'CLOSED' then c.kind is distinct from 'PURCHASE'
      else c.id is not null end`,
  "a lot that is claimed itself has the status of it": `
    select l.id, l.status, c.kind from app_public.lots l
    join app_hidden.claims c on c.lot_id = l.id and c.released_at is null
    where l.status in ('AVAILABLE', 'UNRELEASED', 'OFF_MARKET')`,
  "a lot is claimed when its status says so": `
    select l.id, l.status from app_public.lots l
    where l.status in ('HELD', 'RESERVED', 'PENDING', 'SOLD', 'CLOSED')
      and not exists (select from app_hidden.claims c where c.lot_id = l.id and c.released_at is null)`,
  "an active reservation has its claim, another has none": `
    select r.id, r.status, c.kind from app_public.reservations r
    left join app_hidden.claims c on c.subject_id = r.id and c.released_at is null
    where (r.status in ('PENDING', 'CONFIRMED')) <> (c.id is not null)`,
  "the claim of a reservation is of its unit or lot, until its expiry": `
    select r.id, r.expires_at, c.expires_at from app_public.reservations r
    join app_hidden.claims c on c.subject_id = r.id and c.released_at is null
    where c.expires_at is distinct from r.expires_at or coalesce(c.unit_id, c.lot_id) is distinct from coalesce(r.unit_id, r.lot_id)`,
  "an active hold has its claim, until its end; another has none": `
    select h.id, h.status, c.kind from app_public.unit_holds h
    left join app_hidden.claims c on c.subject_id = h.id and c.released_at is null
    where (h.status = 'ACTIVE') <> (c.id is not null) or c.kind <> 'HOLD' or c.expires_at <> h.expires_at
      or coalesce(c.unit_id, c.lot_id) <> coalesce(h.unit_id, h.lot_id)`,
  "a purchase in force has its claim, another has none": `
    select b.id, b.status, c.kind from app_public.buyers b
    left join app_hidden.claims c on c.subject_id = b.id and c.released_at is null
    where b.deleted_at is null and (b.status <> 'CANCELLED' and coalesce(b.unit_id, b.lot_id) is not null) <> (c.id is not null)`,
  "a unit has one purchase in force": `
    select unit_id from app_public.buyers where status <> 'CANCELLED' and deleted_at is null and unit_id is not null group by 1 having count(*) > 1`,
  "a refunded reservation has no purchase, a converted one has": `
    select r.id, r.status from app_public.reservations r
    where (r.status = 'REFUNDED' and r.purchase_id is not null) or (r.status = 'CONVERTED' and r.purchase_id is null)`,
  "one offer at most is pending, exactly while the negotiation is active": `
    select n.id, n.status, count(o.id) from app_public.negotiations n
    left join app_public.offers o on o.negotiation_id = n.id and o.status = 'PENDING'
    group by n.id, n.status having count(o.id) <> case n.status when 'ACTIVE' then 1 else 0 end`,
  "an accepted negotiation has one accepted offer, another none": `
    select n.id, n.status, count(o.id) from app_public.negotiations n
    left join app_public.offers o on o.negotiation_id = n.id and o.status = 'ACCEPTED'
    group by n.id, n.status having count(o.id) <> case n.status when 'ACCEPTED' then 1 else 0 end`,
  "offers of a round alternate, numbered without a gap": `
    select o.id from (select id, side, sequence, negotiation_id, round,
        lag(side) over w as side_before, row_number() over w as place from app_public.offers
        window w as (partition by negotiation_id, round order by sequence)) o
    where o.side = o.side_before or o.sequence <> o.place`,
  "a countered offer has a counter-offer": `
    select o.id from app_public.offers o where o.status = 'COUNTERED'
      and not exists (select from app_public.offers c where c.parent_id = o.id and c.side <> o.side)`,
  "a response comes from the other side and is what became of the offer": `
    select r.id from app_public.offer_responses r join app_public.offers o on o.id = r.offer_id
    where r.side = o.side or o.status <> case r.action when 'ACCEPT' then 'ACCEPTED' else 'REJECTED' end`,
  "snapshots are as they were when the reservation was made": `
    select r.id from app_public.reservations r join app_public.events e on e.subject_id = r.id and e.name = 'reservation.created'
    where e.data ->> 'listPriceSnapshot' is distinct from r.list_price_snapshot::text
      or e.data ->> 'premiumSnapshot' is distinct from r.premium_snapshot::text
      or e.data ->> 'cancellationFee' is distinct from r.cancellation_fee::text`,
  "a unit that is for sale again is listed at its price before the claim": `
    select u.id, u.price, c.unit_price from app_public.units u
    cross join lateral (select * from app_hidden.claims c where c.unit_id = u.id order by c.released_at desc limit 1) c
    where u.status = 'AVAILABLE' and u.price <> c.unit_price and not exists (select from app_public.events e
      where e.subject_id = u.id and e.changes ? 'price' and e.occurred_at >= c.released_at)`,
  "a lead is reserved while a reservation of it is active": `
    select l.id, l.status from app_public.leads l where l.status in ('LOST', 'UNQUALIFIED')
      and exists (select from app_public.reservations r where r.lead_id = l.id and r.status in ('PENDING', 'CONFIRMED'))`,
  "a converted lead has a buyer": `
    select l.id from app_public.leads l where l.status = 'CONVERTED' and not exists (select from app_public.buyers b where b.lead_id = l.id)`,
  "what is lost or cancelled says why": `
    select id from app_public.leads where status = 'LOST' and fallout_reason_id is null
    union all select id from app_public.buyers where status = 'CANCELLED' and cancellation_reason is null and fallout_reason_id is null
    union all select id from app_public.reservations where status = 'CANCELLED' and cancellation_reason is null and fallout_reason_id is null`,
  "a deal has one assignee": `
    select r.id from app_public.reservations r join app_public.leads l on l.id = r.lead_id where r.assignee_id is distinct from l.assignee_id
    union all select n.id from app_public.negotiations n join app_public.leads l on l.id = n.lead_id where n.assignee_id is distinct from l.assignee_id
    union all select b.id from app_public.buyers b join app_public.leads l on l.id = b.lead_id and b.status <> 'CANCELLED' where b.assignee_id is distinct from l.assignee_id`,
  "statuses go by listed steps, one event each, up to the present one": `
    with steps as (
      select e.subject_type, e.subject_id, e.id,
        case when e.changes is null then null else e.changes -> 'status' ->> 0 end as from_state,
        coalesce(e.changes -> 'status' ->> 1, e.data ->> 'status') as to_state,
        lag(coalesce(e.changes -> 'status' ->> 1, e.data ->> 'status')) over (partition by e.subject_id order by e.id) as before,
        row_number() over (partition by e.subject_id order by e.id desc) = 1 as is_last
      from app_public.events e
      where e.subject_type in ('lead', 'unit', 'lot', 'reservation', 'negotiation', 'offer', 'buyer', 'personalization')
        and (e.changes ? 'status' or e.name like '%.created')
    )
    select s.subject_type, s.subject_id, s.from_state, s.to_state, s.before from steps s
    where s.from_state is distinct from s.before
      or not exists (select from app_hidden.transitions t
        where t.subject = s.subject_type and t.from_state is not distinct from s.from_state and t.to_state = s.to_state)`,
  "the last event of a status is the status": `
    select t.kind, t.id, t.status, e.state from (
      select 'lead' as kind, id, status::text from app_public.leads
      union all select 'unit', id, status from app_public.units union all select 'lot', id, status from app_public.lots
      union all select 'reservation', id, status from app_public.reservations union all select 'negotiation', id, status from app_public.negotiations
      union all select 'offer', id, status from app_public.offers union all select 'buyer', id, status from app_public.buyers
      union all select 'personalization', id, status from app_public.personalizations) t
    cross join lateral (select coalesce(e.changes -> 'status' ->> 1, e.data ->> 'status') as state from app_public.events e
      where e.subject_id = t.id and (e.changes ? 'status' or e.name like '%.created') order by e.id desc limit 1) e
    where e.state <> t.status`,
  "the events of an organization are numbered without a gap": `
    select stream_id from app_public.events group by stream_id having count(*) <> max(sequence) or min(sequence) <> 1`,
  "nothing that should have ended waits but what is due later": `
    select * from app_hidden.deadlines where failures > 0`,
};

/**
 * Generates such queries: for each pair of tables of a project with a reference between them, rows of two different
 * projects.
 */
const relationInvariants = `
    select format('%s.%s leads to the same project', c.conrelid::regclass, a.attname) as name,
      format('select r.id from %s r join %s o on o.id = r.%I where r.project_id <> o.project_id', c.conrelid::regclass, c.confrelid::regclass, a.attname) as query
    from pg_constraint c
    join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
    where c.contype = 'f' and c.connamespace = 'app_public'::regnamespace
      and exists (select from pg_attribute x where x.attrelid = c.conrelid and x.attname = 'project_id')
      and exists (select from pg_attribute x where x.attrelid = c.conrelid and x.attname = 'id')
      and exists (select from pg_attribute x where x.attrelid = c.confrelid and x.attname = 'project_id')
      and exists (select from pg_attribute x where x.attrelid = c.confrelid and x.attname = 'id')`;

/**
 * The rows that violate a rule, by the rule.
 * @param owner the owner of the schema, who alone sees all rows
 * @param limit maximum number of rows per rule
 */
export async function brokenInvariants(
  owner: Pool | ClientBase,
  limit = 100,
): Promise<Record<string, unknown[]>> {
  const found: Record<string, unknown[]> = {};
  const { rows: relations } = await owner.query<{ name: string; query: string }>(relationInvariants);
  const queries = [
    ...Object.entries(invariants),
    ...relations.map(({ name, query }) => [name, query] as const),
  ];
  for (const [name, query] of queries) {
    const { rows } = await owner.query(`select * from (${query}) broken limit ${limit}`);
    if (rows.length > 0) found[name] = rows;
  }
  return found;
}
