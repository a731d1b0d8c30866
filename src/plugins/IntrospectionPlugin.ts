/**
 * PERF: PostGraphile reads the catalog for each schema that it builds, and keeps it in case the same instance builds
 * another one. This replacement of the stock plugin
 * - reads only the parts of the catalog that plugins use (see src/schema/introspectionQuery.ts);
 * - finds objects by their id, where the stock plugin searches all objects of a kind;
 * - does not keep the catalog, since each of our instances builds one schema (`npm run dev` creates new instances).
 */
import { withPgClientFromPgService } from "postgraphile/@dataplan/pg";
import { PgIntrospectionPlugin } from "postgraphile/graphile-build-pg";
import { introspectionQuery } from "../schema/introspectionQuery.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      IntrospectionPlugin: true;
    }
  }
}

type Gather = NonNullable<typeof PgIntrospectionPlugin.gather>;
type Helpers = GraphileConfig.GatherHelpers["pgIntrospection"];
type Introspections = Awaited<ReturnType<Helpers["getIntrospection"]>>;
type Introspection = Introspections[number]["introspection"];

const stock = PgIntrospectionPlugin.gather as Required<Gather>;
/** Input of helpers; of its caches only what is used. */
interface Info {
  cache: { introspectionResultsPromise: unknown };
  state: { getIntrospectionPromise: Introspections | Promise<Introspections> | null };
  resolvedPreset: GraphileConfig.ResolvedPreset;
  helpers: { pgIntrospection: Helpers };
}
const { getIntrospection } = stock.helpers as unknown as Record<
  "getIntrospection",
  (info: Info) => Introspections | Promise<Introspections>
>;

/** Reads the catalogs, as the stock plugin parses and announces them. */
const readCatalogs = (services: Info["resolvedPreset"]["pgServices"]) =>
  Promise.all(
    (services ?? []).map(async (pgService) => {
      const { rows } = await withPgClientFromPgService(
        pgService,
        pgService.pgSettingsForIntrospection ?? null,
        (client) =>
          client.query<{ introspection: string }>(introspectionQuery(pgService.schemas ?? ["public"])),
      );
      return { pgService, introspectionText: rows[0]!.introspection };
    }),
  );

/** A helper that looks an object up in what is known of a service. */
const lookUp =
  <Found>(find: (introspection: Introspection, id: string) => Found) =>
  async (info: Info, serviceName: string, id: string): Promise<Found> => {
    const { introspection } = await info.helpers.pgIntrospection.getService(serviceName);
    return find(introspection, id);
  };

/** Types by their arrays. */
const elements = new WeakMap<Introspection, Map<string, Introspection["types"][number]>>();

function typeOfArray(
  introspection: Introspection,
  arrayId: string,
): Introspection["types"][number] | undefined {
  let known = elements.get(introspection);
  if (!known) {
    known = new Map();
    // The first one is found.
    for (const type of introspection.types.toReversed()) if (type.typarray) known.set(type.typarray, type);
    elements.set(introspection, known);
  }
  return known.get(arrayId);
}

export const IntrospectionPlugin: GraphileConfig.Plugin = {
  ...PgIntrospectionPlugin,
  name: "IntrospectionPlugin",
  provides: ["PgIntrospectionPlugin"],
  gather: {
    ...stock,
    helpers: {
      ...stock.helpers,
      getIntrospection(info: Info) {
        const known = info.state.getIntrospectionPromise;
        if (known) return known;
        info.cache.introspectionResultsPromise = readCatalogs(info.resolvedPreset.pgServices);
        return Promise.resolve(getIntrospection(info)).finally(() => {
          info.cache.introspectionResultsPromise = null;
        });
      },
      getNamespace: lookUp((introspection, id) => introspection.getNamespace({ id })),
      getClass: lookUp((introspection, id) => introspection.getClass({ id })),
      getConstraint: lookUp((introspection, id) => introspection.getConstraint({ id })),
      getProc: lookUp((introspection, id) => introspection.getProc({ id })),
      getType: lookUp((introspection, id) => introspection.getType({ id })),
      getTypeByArray: lookUp(typeOfArray),
    },
  } as unknown as Gather,
};
