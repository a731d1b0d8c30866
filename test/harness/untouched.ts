import { createHash } from "node:crypto";
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

/** Everything that the operations of leads and projects can write, events and slugs included. */
const written = [...tables.map((name) => `app_public.${name}`), "app_private.slugs"];

/** A digest of the rows of each of the tables. */
export async function digest(api: Api, of: string[] = written): Promise<Record<string, string>> {
  const parts = of.map(
    (name) =>
      `select '${name}' as name, count(*) || ' ' || coalesce(bit_xor(hashtextextended(t::text, 0)), 0) as rows from ${name} t`,
  );
  // By a name, so that it is planned once.
  const text = parts.join(" union all ");
  const name = `digest ${createHash("md5").update(text).digest("hex")}`;
  const { rows } = await api.owner.query<{ name: string; rows: string }>({ name, text });
  return Object.fromEntries(rows.map((row) => [row.name, row.rows]));
}

/** Does the work and proves that it changed no record and wrote no event. */
export async function untouched<T>(api: Api, work: () => Promise<T>): Promise<T> {
  const before = await digest(api);
  const result = await work();
  expect(await digest(api)).toEqual(before);
  return result;
}
