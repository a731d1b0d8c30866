import { Client } from "pg";

/**
 * A text that identifies the state of the catalog and of the enumerations, from which the GraphQL schema is built.
 * Clones have the same text, and any change results in another one.
 *
 * Whatever changes the catalog or the values of an enumeration inserts rows with a new transaction id, or removes rows.
 */
export async function catalogState(connectionString: string): Promise<string> {
  const catalogs = "attribute attrdef class constraint description enum index namespace proc range type";
  const client = new Client({ connectionString });
  await client.connect();
  const statesOf = async (tables: string[]): Promise<string> => {
    const states = tables.map((name) => `select '${name}', count(*), max(xmin::text::bigint) from ${name}`);
    const { rows } = await client.query<{ state: string }>(
      // The server may read them in parallel, in any order.
      `select string_agg(s::text, ' ' order by s::text) as state from (${states.join(" union all ")}) s`,
    );
    return rows[0]!.state;
  };
  try {
    await client.query("set role plat_user; set max_parallel_workers_per_gather = 0");
    const { rows: enums } = await client.query<{ name: string }>(
      `select d.objoid::regclass::text as name from pg_description d join pg_class c on c.oid = d.objoid and c.relkind in ('r', 'p')
       where d.classoid = 'pg_class'::regclass and d.objsubid = 0 and d.description like '@enum%' and c.relnamespace = 'app_public'::regnamespace`,
    );
    return await statesOf([
      ...catalogs.split(" ").map((name) => `pg_${name}`),
      ...enums.map(({ name }) => name),
    ]);
  } finally {
    await client.end();
  }
}
