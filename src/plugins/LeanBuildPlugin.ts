/**
 * PERF: relieves the build of the schema of work whose results nobody uses, a twelfth of its time:
 * - notes for graphile-export on each function, with which it could write them out as source code
 * - two messages for `DEBUG` and two handlers of errors for each of 120,000 calls of hooks
 * - searches through all functions and tables for each type.
 */
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { PgAggregatesPreset } from "@graphile/pg-aggregates";
import { SchemaBuilder } from "postgraphile/graphile-build";
import type { PgCodec } from "postgraphile/@dataplan/pg";
import type { AnyResource } from "../schema/recordTables.ts";
import type { AnyType } from "../schema/stackTypes.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      LeanBuildPlugin: true;
    }
  }
}

type Factory = (...args: unknown[]) => unknown;
type Exportable = (factory: Factory, args: unknown[], nameHint?: string) => unknown;
interface Internals {
  EXPORTABLE: Exportable;
  EXPORTABLE_OBJECT_CLONE(object: object, nameHint?: string): object;
  EXPORTABLE_ARRAY_CLONE(array: unknown[], nameHint?: string): unknown[];
  getComputedAttributeResources(build: GraphileBuild.Build, resource: AnyResource): AnyResource[];
}

const require = createRequire(import.meta.url);
/** A module of a package that its package does not export. Its members are looked up at each call. */
const internals = (packageName: string, file: string): Internals =>
  require(join(dirname(require.resolve(packageName)), file)) as Internals;

/** Functions are marked, which is asked for, but keep nothing of what they were made of. */
function withoutNotes(module: Pick<Internals, "EXPORTABLE">): void {
  const { EXPORTABLE } = module;
  module.EXPORTABLE = (factory, args, nameHint) => {
    const made = factory(...args);
    if (typeof made !== "function") return EXPORTABLE(() => made, [], nameHint);
    if (!("$exporter$factory" in made)) Object.assign(made, { $exporter$factory: true });
    return made;
  };
}

/** What was cloned is not cloned again. */
function withoutSource(module: Internals): void {
  const clones = new WeakSet<object>();
  const once = <T extends object>(value: T, clone: () => T): T => {
    if (clones.has(value) || "$exporter$factory" in value) return value;
    const made = clone();
    clones.add(made);
    return made;
  };
  module.EXPORTABLE_OBJECT_CLONE = (object) => once(object, () => ({ ...object }));
  module.EXPORTABLE_ARRAY_CLONE = (array) => once(array, () => [...array]);
}

const stack = internals("graphile-build", "utils.js");
withoutNotes(stack);
withoutSource(stack);
withoutNotes(internals("@graphile/pg-aggregates", "EXPORTABLE.js"));

const aggregates = internals("@graphile/pg-aggregates", "utils.js");
const { getComputedAttributeResources } = aggregates;
const computed = new WeakMap<AnyResource, AnyResource[]>();
aggregates.getComputedAttributeResources = (build, resource) => {
  const known = computed.get(resource) ?? getComputedAttributeResources(build, resource);
  computed.set(resource, known);
  return known;
};

/** These search for the table of each type before they see that it is no connection. */
for (const name of ["AddConnectionAggregates", "AddConnectionGroupedAggregates"]) {
  const { hooks } = PgAggregatesPreset.plugins!.find(
    (plugin) => plugin.name === `PgAggregates${name}Plugin`,
  )!.schema!;
  const search = hooks!.GraphQLObjectType_fields as AnyType;
  hooks!.GraphQLObjectType_fields = (fields, build, context) =>
    context.scope.isConnectionType && context.scope.isPgConnectionRelated
      ? search(fields, build, context)
      : fields;
}

type Hook = (value: unknown, build: GraphileBuild.Build, context: unknown) => unknown;

SchemaBuilder.prototype.applyHooks = function (
  this: { hooks: Record<string, (Hook & { displayName?: string })[]> },
  event: string,
  input: unknown,
  build: GraphileBuild.Build,
  context: unknown,
) {
  const { status } = build;
  let value = input;
  for (const hook of this.hooks[event]!) {
    const { currentHookName, currentHookEvent } = status;
    status.currentHookName = hook.displayName ?? hook.name;
    status.currentHookEvent = event;
    value = hook(value, build, context);
    status.currentHookName = currentHookName;
    status.currentHookEvent = currentHookEvent;
    if (!value) throw new Error(`${hook.displayName ?? hook.name} returned nothing for ${event}.`);
  }
  return value;
} as AnyType;

/** The only table of a codec; null if there is none or several. */
function tablesByCodec(resources: AnyResource[]): (codec: PgCodec) => AnyResource | null {
  const known = new Map<PgCodec, AnyResource | null>();
  for (const resource of resources)
    if (!resource.parameters && resource.executor === resource.codec.executor)
      known.set(resource.codec, known.has(resource.codec) ? null : resource);
  return (codec) => known.get(codec) ?? null;
}

export const LeanBuildPlugin: GraphileConfig.Plugin = {
  name: "LeanBuildPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      build: {
        after: ["PgBasicsPlugin"],
        callback(build) {
          const all = Object.values(build.input.pgRegistry.pgResources) as AnyResource[];
          const strict = tablesByCodec(all.filter(({ isVirtual, isUnique }) => !isVirtual && !isUnique));
          const any = tablesByCodec(all);
          build.pgTableResource = ((codec: PgCodec, isStrict = true) =>
            (isStrict ? strict : any)(codec)) as AnyType;
          return build;
        },
      },
    },
  },
};
