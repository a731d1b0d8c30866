/**
 * PERF: the stack keeps what it read of the catalog for a schema that the same instance would build again: 25 MB as one text, and the
 * sources of all functions and policies. Here no instance builds two (`npm run dev` makes a new one), so that this plugin, which stands
 * for the stack's own, lets go of the text when it is parsed and of the sources when the schema is built.
 */
import { PgIntrospectionPlugin } from "postgraphile/graphile-build-pg";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      IntrospectionPlugin: true;
    }
  }
}

type Gather = NonNullable<typeof PgIntrospectionPlugin.gather>;
type Introspections = Awaited<
  ReturnType<GraphileConfig.GatherHelpers["pgIntrospection"]["getIntrospection"]>
>;

const stock = PgIntrospectionPlugin.gather as Required<Gather>;
/** What helpers are handed; of its cache only what is let go of. */
interface Info {
  cache: { introspectionResultsPromise: unknown };
}
const { getIntrospection } = stock.helpers as unknown as Record<
  "getIntrospection",
  (info: Info) => Promise<Introspections>
>;

function dropSources(introspections: Introspections): void {
  for (const { introspection } of introspections) {
    for (const proc of introspection.procs) Object.assign(proc, { prosrc: null, proargdefaults: null });
    for (const policy of introspection.policies) Object.assign(policy, { polqual: null, polwithcheck: null });
    for (const constraint of introspection.constraints) Object.assign(constraint, { conbin: null });
    for (const index of introspection.indexes) Object.assign(index, { indpred: null, indexprs: null });
  }
}

/** One for each instance. */
export function createIntrospectionPlugin(): GraphileConfig.Plugin {
  let known: Introspections = [];
  const helpers = {
    ...stock.helpers,
    async getIntrospection(info: Info) {
      known = await getIntrospection(info);
      info.cache.introspectionResultsPromise = null;
      return known;
    },
  };
  return {
    ...PgIntrospectionPlugin,
    name: "IntrospectionPlugin",
    provides: ["PgIntrospectionPlugin"],
    gather: { ...stock, helpers } as Gather,
    schema: {
      hooks: {
        finalize(schema) {
          dropSources(known);
          known = [];
          return schema;
        },
      },
    },
  };
}
