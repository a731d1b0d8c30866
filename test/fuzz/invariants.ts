/** Invariants besides those of deals: each is a query for rows that violate it. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Pool } from "pg";
import { brokenInvariants as brokenDeals } from "../../src/doctor/invariants.ts";

const checks: Record<string, string> = {
  "a charge has given back what its refunds say": `
    select c.id, c.status, c.amount, c.amount_refunded, c.amount_refunding, r.refunded, r.refunding from app_public.processor_charges c
    left join lateral (select coalesce(sum(r.amount) filter (where r.status = 'SUCCEEDED'), 0) as refunded,
        coalesce(sum(r.amount) filter (where r.status = 'PENDING'), 0) as refunding
      from app_public.processor_refunds r where r.charge_id = c.id) r on true
    where c.amount_refunded <> r.refunded or c.amount_refunding <> r.refunding
      or c.amount_refunded + c.amount_refunding > c.amount
      or (c.status = 'REFUNDED' and c.amount_refunded <> c.amount)
      or (c.status = 'PARTIALLY_REFUNDED' and c.amount_refunded not between 0.01 and c.amount - 0.01)`,
  "a deposit has what its charges brought, and not more than its amount": `
    select d.id, d.status, d.amount_paid, d.amount_fixed, c.paid from app_public.deposits d
    left join lateral (select coalesce(sum(c.amount - c.amount_refunded), 0) as paid from app_public.processor_charges c
      where c.deposit_id = d.id and c.status in ('SUCCEEDED', 'PARTIALLY_REFUNDED')) c on true
    where d.amount_paid < 0 or d.amount_paid > d.amount_fixed or c.paid > d.amount_paid
      or (d.status = 'PAID' and (d.paid_at is null or d.amount_paid is distinct from d.amount_fixed))`,
  "events are numbered without a gap": `
    select organization_id, count(*), max(sequence) from app_public.events where organization_id is not null
    group by organization_id having count(*) <> max(sequence) or count(distinct sequence) <> count(*)`,
  "an event is about a project of its organization": `
    select e.id, e.name from app_public.events e join app_public.projects p on p.id = e.project_id
    where p.organization_id <> e.organization_id and e.subject_type not in ('affiliation', 'affiliation_invite')`,
  "an organization has an owner": `
    select o.id, o.name from app_public.organizations o where o.deleted_at is null and not exists (
      select from app_public.organization_user_connections c where c.organization_id = o.id and c.role = 'OWNER')`,
  "an execution that is over waits for nothing": `
    select w.execution_id, e.status from app_private.workflow_waits w join app_public.workflow_executions e on e.id = w.execution_id
    where e.status in ('COMPLETED', 'FAILED', 'CANCELLED')`,
  "a stored file counts for its owners": `
    select f.organization_id, sum(f.filesize), max(u.bytes) from app_private.stored_files f
    left join app_private.storage_used u on u.owner_id = f.organization_id
    where f.organization_id is not null group by f.organization_id having sum(f.filesize) is distinct from max(u.bytes)`,
  "no job fails": `
    select t.identifier, j.payload, j.attempts, j.last_error from graphile_worker._private_jobs j
    join graphile_worker._private_tasks t on t.id = j.task_id where j.last_error is not null`,
  "nothing is uploaded for ever": "select checksum from app_private.stored_files where pending > 0",
};

/** Checks that are generated from the catalog. */
const generated: Record<string, string> = {
  "leads to the same organization": `
    select format('%s.%s', c.conrelid::regclass, a.attname) as about,
      format('select r.id, r.organization_id, o.organization_id as of from %s r join %s o on o.id = r.%I where r.organization_id <> o.organization_id',
        c.conrelid::regclass, c.confrelid::regclass, a.attname) as query
    from pg_constraint c
    join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
    where c.contype = 'f' and c.connamespace = 'app_public'::regnamespace
      and (select count(*) from pg_attribute x where x.attrelid in (c.conrelid, c.confrelid) and c.conrelid <> c.confrelid
        and x.attname in ('id', 'organization_id')) = 4
      and a.attname <> 'organization_id'
      -- The part that another organization has in a project, and its invitation.
      and c.conrelid not in ('app_public.project_organizations'::regclass, 'app_public.project_organization_invites'::regclass)`,
  "has its content": `
    select t.table_name as about,
      format('select r.id, r.checksum from app_public.%I r where r.deleted_at is null and r.checksum is not null and not exists (
        select from app_private.stored_files f where f.checksum = r.checksum and f.is_stored)', t.table_name) as query
    from app_private.file_tables t`,
};

/**
 * @param dataDir the data folder of the API
 * @returns the rows that violate each rule
 */
export async function brokenInvariants(owner: Pool, dataDir: string): Promise<Record<string, unknown[]>> {
  const found = await brokenDeals(owner);
  const check = async (name: string, query: string) => {
    const { rows } = await owner.query(query);
    if (rows.length) found[name] = rows.slice(0, 10);
  };
  for (const [name, query] of Object.entries(checks)) await check(name, query);
  for (const [name, catalog] of Object.entries(generated)) {
    const { rows } = await owner.query<{ about: string; query: string }>(catalog);
    for (const { about, query } of rows) await check(`${about} ${name}`, query);
  }
  const { rows } = await owner.query<{ checksum: string }>("select checksum from app_private.stored_files");
  const known = new Set(rows.map(({ checksum }) => checksum));
  const files = await readdir(join(dataDir, "files"), { recursive: true }).catch(() => []);
  // Files are in folders named by the first two digits.
  const checksums = files
    .map((path) => /^([0-9a-f]{2})\W([0-9a-f]{62})/.exec(path))
    .filter((match) => match !== null);
  const strangers = checksums
    .filter(([, first, rest]) => !known.has(`${first}${rest}`))
    .map(([path]) => path);
  if (strangers.length) found["a file of the store is known"] = strangers;
  return found;
}
