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

/** All tables that operations on leads and projects can write to, including events and slugs. */
const written = [...tables.map((name) => `app_public.${name}`), "app_private.slugs"];

interface Digest {
  /** Number of rows and the latest transaction that wrote one: the digest is unchanged as long as these are. */
  state: string;
  digest: string;
}
const known = new WeakMap<Api["owner"], Map<string, Digest>>();

/** A digest of the rows of each table. A table that was not written since the last digest is not read again. */
export async function digest({ owner }: Api, of: string[] = written): Promise<Record<string, string>> {
  const latest = known.get(owner) ?? new Map<string, Digest>();
  known.set(owner, latest);
  const states = await perTable(owner, of, "count(*) || ' ' || coalesce(max(xmin::text::bigint), 0)", true);
  const changed = of.filter((name) => latest.get(name)?.state !== states[name]);
  const digests = await perTable(
    owner,
    changed,
    "count(*) || ' ' || coalesce(bit_xor(hashtextextended(t::text, 0)), 0)",
  );
  for (const name of changed) latest.set(name, { state: states[name]!, digest: digests[name]! });
  return Object.fromEntries(of.map((name) => [name, latest.get(name)!.digest]));
}

/** The value of an expression over the rows of each table; prepared, it is planned once. */
async function perTable(
  owner: Api["owner"],
  of: string[],
  expression: string,
  prepared = false,
): Promise<Record<string, string>> {
  if (of.length === 0) return {};
  const text = of
    .map((name) => `select '${name}' as name, ${expression} as value from ${name} t`)
    .join(" union all ");
  const name = prepared ? createHash("md5").update(text).digest("hex") : undefined;
  const { rows } = await owner.query<{ name: string; value: string }>({ name, text });
  return Object.fromEntries(rows.map((row) => [row.name, row.value]));
}

/** Runs work and asserts that it changed no record and wrote no event. */
export async function expectUnchanged<T>(api: Api, work: () => Promise<T>): Promise<T> {
  const before = await digest(api);
  const result = await work();
  expect(await digest(api)).toEqual(before);
  return result;
}
