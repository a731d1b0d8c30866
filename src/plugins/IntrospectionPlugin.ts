/**
 * PERF: PostGraphile keeps the introspected catalog in case the same instance rebuilds the schema: 25 MB as text, and
 * the sources of all functions and policies. Our instances build one schema (`npm run dev` creates a new instance),
 * so this replacement of the stock plugin releases the text when it is parsed and the sources when the schema is
 * built.
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
/** Input of helpers; of its cache only what is released. */
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

/** Per instance. */
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
