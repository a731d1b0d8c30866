/**
 * One GraphQL schema for all databases of a process whose catalogs are alike, as those of clones are. To read a catalog and to build
 * the schema takes two seconds; it holds nothing of the database or the API it was built for.
 */
import { makeSchema } from "postgraphile";
import { Client } from "pg";
import type { GraphqlInstance } from "../../src/graphql.ts";

type Built = ReturnType<typeof makeSchema>;

const built = new Map<string, Built>();

/** What makes an instance of a preset whose schema is that of the database. */
export async function sharedSchema(
  connectionString: string,
): Promise<(preset: GraphileConfig.Preset) => GraphqlInstance> {
  const state = await catalogState(connectionString);
  return (preset) => {
    let result = built.get(state);
    if (!result) {
      built.set(state, (result = makeSchema(preset)));
      result.catch(() => built.delete(state));
    }
    return instance(preset, result);
  };
}

/** What `postgraphile` makes of a preset, for a schema that others use too. */
function instance(preset: GraphileConfig.Preset, result: Built): GraphqlInstance {
  const schema = result.then(({ schema: shared }) => shared);
  schema.catch(() => {});
  let server: ReturnType<Parameters<GraphqlInstance["createServ"]>[0]> | undefined;
  return {
    createServ: (grafserv) => {
      const created = grafserv({ preset, schema });
      server = created;
      return created;
    },
    getSchema: () => schema,
    release: async () => {
      await server?.release();
    },
  };
}

/** Whatever changes the catalog, or the values of an enumeration, writes rows with a transaction of its own, or removes some. */
async function catalogState(connectionString: string): Promise<string> {
  const catalogs = "attribute attrdef class constraint description enum index namespace proc range type";
  const client = new Client({ connectionString });
  await client.connect();
  const statesOf = async (tables: string[]): Promise<string> => {
    const states = tables.map((name) => `select '${name}', count(*), max(xmin::text::bigint) from ${name}`);
    const { rows } = await client.query<{ state: string }>(
      `select string_agg(s::text, ' ') as state from (${states.join(" union all ")}) s`,
    );
    return rows[0]!.state;
  };
  try {
    await client.query("set role plat_user");
    const { rows: enums } = await client.query<{ name: string }>(
      `select d.objoid::regclass::text as name from pg_description d join pg_class c on c.oid = d.objoid and c.relkind = 'r'
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
