import { expect } from "@jest/globals";
import type { Api } from "./api.ts";

/**
 * Tables that are not checked: uses of tokens, recorded by each request, and the sandbox processor, which is an
 * external party.
 */
const apart = /^app_private\.(?:sessions|access_token_secrets|sandbox_\w+)$/;

/** Our tables in which a transaction has inserted, updated or deleted rows. */
async function tablesOf({ owner }: Pick<Api, "owner">, transaction: string): Promise<string[]> {
  const { rows: tables } = await owner.query<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and (n.nspname like 'app\\_%' or n.nspname = 'graphile_worker')`,
  );
  const any = tables
    .map(
      ({ name }) =>
        `select '${name}' as name where exists (select from ${name} t where t.xmin = $1::xid or t.xmax = $1::xid)`,
    )
    .join(" union all ");
  const { rows } = await owner.query<{ name: string }>(any, [transaction]);
  return rows.map(({ name }) => name);
}

/**
 * Runs work and asserts that nothing was stored: every transaction that wrote anything in that time was rolled back.
 * Recorded uses of tokens are ignored.
 * @param name description of the work for a failure
 */
export async function expectNothingStored<T>(
  api: Pick<Api, "owner">,
  work: () => Promise<T>,
  name = "",
): Promise<T> {
  const next = async () =>
    BigInt((await api.owner.query("select pg_current_xact_id()::text as id")).rows[0].id as string);
  const before = await next();
  const result = await work();
  const after = await next();
  const { rows } = await api.owner.query<{ id: string }>(
    `select id::text as id from generate_series($1::bigint + 1, $2::bigint - 1) id
     where pg_xact_status(id::text::xid8) = 'committed'`,
    [before, after],
  );
  for (const { id } of rows)
    expect([name, ...(await tablesOf(api, id)).filter((table) => !apart.test(table))]).toEqual([name]);
  return result;
}
