import { expect } from "@jest/globals";
import type { Api } from "./api.ts";

const tables = [
  "users",
  "organizations",
  "organization_user_connections",
  "projects",
  "project_organizations",
  "lead_sources",
  "fallout_reasons",
  "leads",
  "lead_notes",
  "contacts",
  "agreements",
  "appointments",
  "phone_calls",
  "tasks",
  "deposits",
  "agents",
  "lots",
  "units",
  "reservations",
  "events",
];

/** A digest of everything that the operations of leads and projects can write, events and slugs included. */
async function digest(api: Api): Promise<Record<string, string>> {
  const parts = tables.map(
    (name) =>
      `select '${name}' as name, md5(string_agg(t::text, '|' order by t.id)) from app_public.${name} t`,
  );
  const { rows } = await api.owner.query<{ name: string; md5: string }>(
    `${parts.join(" union all ")} union all select 'slugs', md5(string_agg(s::text, '|' order by s::text)) from app_private.slugs s`,
  );
  return Object.fromEntries(rows.map((row) => [row.name, row.md5]));
}

/** Does the work and proves that it changed no record and wrote no event. */
export async function untouched<T>(api: Api, work: () => Promise<T>): Promise<T> {
  const before = await digest(api);
  const result = await work();
  expect(await digest(api)).toEqual(before);
  return result;
}
