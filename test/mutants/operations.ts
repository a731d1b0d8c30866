/**
 * Tests functions without one of their checks by mutations: whether each still requires the permissions that
 * docs/mutations.md lists, as test/fuzz/requirements.test.ts does. Uses dry runs of working inputs; most take a tenth of a
 * second.
 */
import { explore } from "../fuzz/explore.ts";
import { readRequirements } from "../fuzz/requirements.ts";
import { startFuzzWorld } from "../fuzz/world.ts";
import { calledIn, type Mutant } from "./mutants.ts";

export interface OperationTrial {
  /** @returns the operation with other requirements; undefined if all are unchanged */
  notices(mutant: Mutant): Promise<string | undefined>;
  /** Mutations without a working input. */
  readonly untried: string[];
  end(): Promise<void>;
}

/** Requires that the global set-up of the tests has run. */
export async function startOperationTrial(): Promise<OperationTrial> {
  const fuzz = await startFuzzWorld({ engine: false });
  const { owner } = fuzz.world;
  const options = { requirements: readRequirements(), rounds: 12, idleRounds: 4 };
  const { working, missing, differs } = await explore(fuzz, options);
  // Earlier mutations may have consumed the records of an input; such inputs are searched for again.
  let over = new Set<string>();
  for (let seed = 2; seed < 6; seed++) {
    over = new Set();
    for (const [name, one] of working) if ((await differs(one)) !== undefined) over.add(name);
    if (over.size === 0) break;
    const again = await explore(fuzz, { ...options, only: over, seed });
    for (const [name, one] of again.working) working.set(name, one);
  }
  for (const name of over) if ((await differs(working.get(name)!)) !== undefined) working.delete(name);
  const untried = [...missing, ...[...over].filter((name) => !working.has(name))];
  const reached = await reachedBy([...working.keys()]);

  /** The functions and triggers that each operation may call, by the names in their sources. */
  async function reachedBy(names: string[]): Promise<Map<string, Set<string>>> {
    const { rows } = await owner.query<{ name: string; source: string }>(
      `select n.nspname || '.' || p.proname as name, string_agg(p.prosrc, ' ') as source
       from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname like 'app\\_%' group by 1`,
    );
    const { rows: triggers } = await owner.query<{ table: string; functions: string[] }>(
      `select c.relnamespace::regnamespace || '.' || c.relname as table, array_agg(distinct n.nspname || '.' || p.proname) as functions
       from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid join pg_namespace n on n.oid = p.pronamespace
       where n.nspname like 'app\\_%' group by 1`,
    );
    const sources = new Map(rows.map(({ name, source }) => [name, source]));
    const triggersOf = new Map(triggers.map(({ table, functions }) => [table, functions]));
    const next = new Map<string, string[]>();
    for (const [name, source] of sources)
      next.set(name, [
        ...calledIn(source),
        ...(source.match(/\bapp_\w+\.\w+/g) ?? []).flatMap((table) => triggersOf.get(table) ?? []),
      ]);
    const found = new Map<string, Set<string>>();
    for (const name of names) {
      const { texts } = await fuzz.world.statements(() => differs(working.get(name)!));
      const seen = new Set(
        texts.flatMap((text) =>
          (text.replaceAll('"', "").match(/\bapp_\w+\.\w+/g) ?? []).flatMap((object) => [
            object,
            ...(triggersOf.get(object) ?? []),
          ]),
        ),
      );
      for (const object of seen) for (const further of next.get(object) ?? []) seen.add(further);
      found.set(name, seen);
    }
    return found;
  }

  return {
    untried,
    async notices({ about, sql, undo }) {
      await owner.query(sql);
      try {
        for (const [name, one] of working)
          if (reached.get(name)!.has(about)) {
            const found = await differs(one);
            if (found !== undefined) return `${name}: ${found}`;
          }
        return undefined;
      } finally {
        await owner.query(undo!);
      }
    },
    end: () => fuzz.stop(),
  };
}
