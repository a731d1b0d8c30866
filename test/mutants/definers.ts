/** Mutants of functions tried by calls of another organization's, as test/schema/definers.test.ts makes them: a second or less for each. */
import { startDefinerCalls, type Definer } from "../harness/definerCalls.ts";
import { calledIn, type Mutant } from "./mutants.ts";

export interface DefinerTrial {
  /** @returns who is given or changes what, or nothing where nobody does, or where no function that they may call runs the mutant's */
  notices(mutant: Mutant): Promise<string | undefined>;
  end(): Promise<void>;
}

/** PERF: what very many functions call shows in some of them. */
const mostDefiners = 8;

/** Wants the cluster of the tests. */
export async function startDefinerTrial(): Promise<DefinerTrial> {
  const { world, definers, faultsOf } = await startDefinerCalls();
  const { client } = world;
  const { rows: routines } = await client.query<{ name: string; source: string }>(
    `select n.nspname || '.' || p.proname as name, string_agg(p.prosrc, ' ') as source
     from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname like 'app\\_%' group by 1`,
  );
  const calls = new Map(routines.map(({ name, source }) => [name, calledIn(source)]));

  /** Those that are the function, or call it, be it through others. */
  function running(name: string): Definer[] {
    return definers
      .filter(({ name: start }) => {
        const reached = new Set([start]);
        for (const one of reached) for (const further of calls.get(one) ?? []) reached.add(further);
        return reached.has(name);
      })
      .toSorted((a, b) => Number(b.name === name) - Number(a.name === name))
      .slice(0, mostDefiners);
  }

  return {
    async notices({ about, sql, id, kind }) {
      const some = kind === "function" ? running(about) : [];
      if (some.length === 0) return undefined;
      const { rows } = await client.query<{ definition: string }>(
        "select pg_get_functiondef($1::regprocedure) as definition",
        [id.slice(0, id.indexOf(": "))],
      );
      await client.query(sql);
      try {
        for (const definer of some) {
          const [fault] = (await faultsOf(definer)).faults.keys();
          if (fault) return `${definer.signature}: ${fault}`;
        }
        return undefined;
      } finally {
        await client.query(`rollback; ${rows[0]!.definition}`);
      }
    },
    end: () => world.end(),
  };
}
