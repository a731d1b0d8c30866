/**
 * Writers of answers. If all of an answer comes from the rows of its statements, a plan does the same with them in each execution: this is
 * compiled once into functions that write the JSON text of the answer from rows. They call what the steps of the plan call.
 */
import {
  AccessStep,
  ConstantStep,
  FirstStep,
  LambdaStep,
  ListStep,
  type OperationPlan,
  type Step,
} from "postgraphile/grafast";
import {
  PgClassExpressionStep,
  PgSelectRowsStep,
  PgSelectSingleStep,
  type PgSelectStep,
} from "postgraphile/@dataplan/pg";
import { GraphQLID, type GraphQLLeafType, GraphQLString } from "postgraphile/graphql";
import type { DefaultPage } from "../limits/defaultPages.ts";
import { ArchivedContentStep } from "../schema/archivedContentStep.ts";

/** The result of a PgSelectStep: the rows, and the indexes of their parts. */
export interface SelectResult {
  readonly items: readonly unknown[];
  readonly m: object;
}

/** The output of a writer. */
export interface WrittenData {
  /** The JSON text of `data`. */
  readonly text: string;
  /** Whether one of the lists without `first` has as many records as its default allows. */
  readonly isFull: boolean;
}

/** @throws NotWritten if only the plan can answer, such as for null in a non-null field */
export type WriteData = (results: readonly SelectResult[]) => WrittenData;

/** A result that only the plan can answer. */
export class NotWritten extends Error {}

/** A plan with a step that has no writer. */
class NoWriter extends Error {}

/** The values of steps, by id: those that change from record to record. */
type Values = unknown[];
type Read = (values: Values) => unknown;
type Write = (values: Values) => string;

/** The properties of grafast's output plans that its types omit. */
interface Output {
  readonly type:
    | { readonly mode: "root" | "object" | "array" | "null" | "polymorphic" | "introspection" }
    | { readonly mode: "leaf"; readonly graphqlType: GraphQLLeafType };
  readonly layerPlan: Layer;
  readonly rootStep: Inside;
  readonly sideEffectStep: unknown;
  readonly processRoot: ((value: unknown, flags: number) => unknown) | null;
  readonly keys: Readonly<
    Record<
      string,
      | { readonly type: "__typename"; readonly typeName?: string }
      | { readonly type: "outputPlan"; readonly isNonNull: boolean; readonly outputPlan: Output }
    >
  >;
  readonly child: Output | null;
  readonly childIsNonNull: boolean;
  readonly deferredOutputPlans: readonly unknown[];
}
interface Layer {
  readonly id: number;
  readonly reason: { readonly type: string; readonly parentLayerPlan?: Layer; readonly stream?: unknown };
  readonly rootStep: Inside | null;
  readonly parentSideEffectStep: unknown;
}
type Inside = Step & {
  readonly dependencies: readonly Inside[];
  readonly isSyncAndSafe: boolean;
  readonly hasSideEffects: boolean;
  unbatchedExecute?(extra: object, ...values: unknown[]): unknown;
};

const layers = new Set(["root", "nullableBoundary", "listItem"]);
/** Steps whose value only depends on the values of previous steps. */
const pure = [PgSelectSingleStep, PgClassExpressionStep, AccessStep, FirstStep, LambdaStep] as const;
const extra = Object.freeze({});

class Compiler {
  /** Set while a result is written. */
  isFull = false;
  readonly #pages: ReadonlyMap<string, number>;

  constructor(pages: readonly DefaultPage[]) {
    this.#pages = new Map(pages.map(({ keys, first }) => [keys.join("."), first]));
  }

  write(output: Output, bound: ReadonlySet<number>, path: readonly string[]): Write {
    const { layerPlan, sideEffectStep, type } = output;
    if (sideEffectStep || layerPlan.parentSideEffectStep || !layers.has(layerPlan.reason.type))
      throw new NoWriter();
    switch (type.mode) {
      case "leaf":
        return this.#leaf(output, type.graphqlType, bound);
      case "root":
      case "object":
        return this.#object(output, bound, path);
      case "array":
        return this.#list(output, bound, path);
      case "null":
        return () => "null";
      default:
        throw new NoWriter();
    }
  }

  #leaf({ rootStep, processRoot }: Output, type: GraphQLLeafType, bound: ReadonlySet<number>): Write {
    const read = this.#read(rootStep, bound);
    // PERF: these keep a string unchanged.
    const isText = type.serialize === GraphQLID.serialize || type.serialize === GraphQLString.serialize;
    return (values) => {
      let value = read(values);
      if (processRoot !== null) value = processRoot(value, 0);
      if (value == null) return "null";
      if (isText && typeof value === "string") return JSON.stringify(value);
      const written = JSON.stringify(type.serialize(value));
      if (written === undefined) throw new NotWritten();
      return written;
    };
  }

  #object(
    { type, keys, rootStep, processRoot, deferredOutputPlans }: Output,
    bound: ReadonlySet<number>,
    path: readonly string[],
  ): Write {
    if (deferredOutputPlans.length > 0) throw new NoWriter();
    const isRoot = type.mode === "root";
    const { id } = rootStep;
    const read = isRoot ? () => true : this.#read(rootStep, bound);
    const inside = isRoot ? bound : new Set(bound).add(id);
    const members = Object.entries(keys).map(([key, spec], index) => {
      const prefix = `${index === 0 ? "{" : ","}${JSON.stringify(key)}:`;
      if (spec.type === "__typename") {
        const name = JSON.stringify((type as { typeName?: string }).typeName);
        return { prefix, isNonNull: true, write: () => name };
      }
      return {
        prefix,
        isNonNull: spec.isNonNull,
        write: this.write(spec.outputPlan, inside, [...path, key]),
      };
    });
    if (members.length === 0) throw new NoWriter();
    return (values) => {
      const value = read(values);
      if (!isRoot) values[id] = value;
      if ((processRoot === null ? value : processRoot(value, 0)) == null) return "null";
      let text = "";
      for (const { prefix, isNonNull, write } of members) {
        const written = write(values);
        if (isNonNull && written === "null") throw new NotWritten();
        text += prefix + written;
      }
      return text + "}";
    };
  }

  #list(
    { rootStep, processRoot, child, childIsNonNull, layerPlan }: Output,
    bound: ReadonlySet<number>,
    path: readonly string[],
  ): Write {
    if (!child) throw new NoWriter();
    let layer: Layer | undefined = child.layerPlan;
    while (layer && !(layer.reason.type === "listItem" && layer.reason.parentLayerPlan === layerPlan)) {
      if (!layers.has(layer.reason.type)) throw new NoWriter();
      layer = layer.reason.parentLayerPlan;
    }
    if (!layer?.rootStep || layer.reason.stream) throw new NoWriter();
    const { id } = layer.rootStep;
    const read = this.#read(rootStep, bound);
    const write = this.write(child, new Set(bound).add(id), path);
    const fullAt = this.#pages.get(path.join("."));
    return (values) => {
      let list = read(values);
      if (processRoot !== null) list = processRoot(list, 0);
      if (list == null) return "null";
      if (!Array.isArray(list)) throw new NotWritten();
      if (list.length === fullAt) this.isFull = true;
      let text = "[";
      for (let index = 0; index < list.length; index += 1) {
        values[id] = list[index];
        const written = write(values);
        if (childIsNonNull && written === "null") throw new NotWritten();
        text += index === 0 ? written : `,${written}`;
      }
      return text + "]";
    };
  }

  #read(step: Inside, bound: ReadonlySet<number>): Read {
    const { id } = step;
    if (bound.has(id)) return (values) => values[id];
    if (step instanceof ConstantStep) {
      const { data } = step as unknown as { data: unknown };
      return () => data;
    }
    if (step instanceof ArchivedContentStep) {
      const archivedAt = this.#read(step.archivedAt as Inside, bound);
      // The plan reads it from the archive.
      return (values) => {
        if (archivedAt(values) != null) throw new NotWritten();
        return null;
      };
    }
    const given = step.dependencies.map((before) => this.#read(before, bound));
    const [first] = given;
    if (step instanceof ListStep) return (values) => given.map((read) => read(values));
    if (step instanceof PgSelectRowsStep) return (values) => (first!(values) as SelectResult | null)?.items;
    if (
      !first ||
      step.hasSideEffects ||
      !(step.isSyncAndSafe || step instanceof LambdaStep) ||
      !step.unbatchedExecute ||
      !pure.some((kind) => step instanceof kind)
    )
      throw new NoWriter();
    const unbatched = step.unbatchedExecute.bind(step);
    const execute: typeof unbatched = step.isSyncAndSafe ? unbatched : atOnce(unbatched);
    if (given.length === 1) return (values) => execute(extra, first(values));
    return (values) => execute(extra, ...given.map((read) => read(values)));
  }
}

/** The synchronous result of a function that may fail or answer later. */
function atOnce(execute: NonNullable<Inside["unbatchedExecute"]>): typeof execute {
  return (...given) => {
    let value: unknown;
    try {
      value = execute(...given);
    } catch {
      throw new NotWritten();
    }
    if (value instanceof Error || typeof (value as PromiseLike<unknown> | null)?.then === "function")
      throw new NotWritten();
    return value;
  };
}

/**
 * Compiles the writer of a plan.
 * @param pages lists whose size the operation leaves to their defaults
 * @returns undefined if a plan does more than shape the rows of these steps
 */
export function compileWriter(
  plan: OperationPlan,
  selects: readonly PgSelectStep[],
  pages: readonly DefaultPage[],
): WriteData | undefined {
  const ids: number[] = [];
  for (const $select of selects) {
    const { fetchOneExtra, lastStepId, beforeStepId, mode, id } = $select as unknown as {
      fetchOneExtra: boolean;
      lastStepId: number | null;
      beforeStepId: number | null;
      mode: string;
      id: number;
    };
    // These cut or reverse rows after they have arrived.
    if (fetchOneExtra || lastStepId !== null || beforeStepId !== null) return undefined;
    if (mode !== "normal" && mode !== "aggregate") return undefined;
    ids.push(id);
  }
  const compiler = new Compiler(pages);
  let write: Write;
  try {
    const { rootOutputPlan } = plan as unknown as { rootOutputPlan: Output };
    write = compiler.write(rootOutputPlan, new Set(ids), []);
  } catch (error) {
    if (error instanceof NoWriter) return undefined;
    throw error;
  }
  return (results) => {
    const values: Values = [];
    for (const [index, id] of ids.entries()) values[id] = results[index];
    compiler.isFull = false;
    const text = write(values);
    return { text, isFull: compiler.isFull };
  };
}
