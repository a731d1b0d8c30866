import { CompiledOperation } from "./compiledQueries.ts";
import { type DocumentNode, type GraphQLError, Kind, visit } from "postgraphile/graphql";

/** Memory of a plan per step, in bytes, as measured: 4,300 to 5,200. */
const BYTES_PER_STEP = 5_000;
/** Memory of a parsed document per character: tokens, nodes and locations. */
const BYTES_PER_CHARACTER = 80;
const BYTES_AT_LEAST = 2_000;
/** Maximum plans of one operation: variables in `@include` and `@skip` create several. */
export const PLANS_PER_OPERATION = 8;

/** The variables of a document's conditions, `@include(if: $name)` and `@skip(if: $name)`, each once. */
function conditionVariables(text: string, document: DocumentNode): readonly string[] {
  // PERF: most documents have no directive, and visiting all nodes takes a while.
  if (!text.includes("@")) return [];
  const names = new Set<string>();
  visit(document, {
    Directive(node) {
      for (const { value } of node.arguments ?? [])
        if (value.kind === Kind.VARIABLE) names.add(value.name.value);
    },
  });
  return [...names];
}

/** A document that was parsed and validated, with everything that is cached for it. */
export class KnownDocument {
  readonly text: string;
  readonly result: { document: DocumentNode } | { errors: readonly GraphQLError[] };
  /** Answers that only depend on the document, by the name of the operation. */
  readonly answers = new Map<string, object>();
  /** By the name of the operation. */
  readonly #compiled = new Map<string, CompiledOperation>();
  readonly #plans = new WeakSet<object>();
  /** The number of plans, by the name of the operation. */
  readonly #planned = new Map<string, number>();
  /** By the name of the operation: the values of conditions for which there is a plan, least recently used first. */
  readonly #conditions = new Map<string, Set<string>>();
  readonly #variables: readonly string[];
  #kept = 0;

  constructor(text: string, result: KnownDocument["result"]) {
    this.text = text;
    this.result = result;
    this.#variables = "document" in result ? conditionVariables(text, result.document) : [];
  }

  /** The values that the plan of an operation depends on. */
  #key(variables: Record<string, unknown>): string {
    return this.#variables
      .map((name) => {
        const value = variables[name];
        return typeof value === "boolean" ? Number(value) : "-";
      })
      .join("");
  }

  /** Estimated bytes of this document, its plans and its answers. */
  get bytes(): number {
    return BYTES_AT_LEAST + this.text.length * BYTES_PER_CHARACTER + this.#kept;
  }

  /**
   * Whether executing this operation with these variables will find its plan. If more plans were made than the conditions explain, this is
   * unknown, and the answer is no.
   */
  isPlanned(operation: string, variables: Record<string, unknown> = {}): boolean {
    const known = this.#conditions.get(operation);
    return (
      known !== undefined &&
      known.has(this.#key(variables)) &&
      (this.#planned.get(operation) ?? 0) <= known.size
    );
  }

  /** Records that there is a plan of an operation for these variables; to be called after every execution. */
  usedPlan(operation: string, variables: Record<string, unknown> = {}): void {
    if (!this.#planned.has(operation)) return;
    let known = this.#conditions.get(operation);
    if (!known) this.#conditions.set(operation, (known = new Set()));
    const key = this.#key(variables);
    known.delete(key);
    known.add(key);
    const [oldest] = known;
    if (known.size > PLANS_PER_OPERATION) known.delete(oldest!);
  }

  addPlan(operation: string, plan: object, steps: number): void {
    if (this.#plans.has(plan)) return;
    this.#plans.add(plan);
    const count = (this.#planned.get(operation) ?? 0) + 1;
    this.#planned.set(operation, count);
    if (count <= PLANS_PER_OPERATION) this.#kept += steps * BYTES_PER_STEP;
  }

  /**
   * The compiled form of an operation; undefined if a document is refused, or before its operation was planned.
   * @param atOnce also before that
   */
  compiled(operation: string, atOnce = false): CompiledOperation | undefined {
    const known = this.#compiled.get(operation);
    if (known || !("document" in this.result)) return known;
    if (!atOnce && !this.#planned.has(operation)) return undefined;
    const made = new CompiledOperation(this.result.document, operation || null, this.text);
    this.#compiled.set(operation, made);
    return made;
  }

  /** Adds the bytes of what was compiled. */
  keepCompiled(bytes: number): void {
    this.#kept += bytes;
  }

  keepAnswer(operation: string, answer: object, bytes: number): void {
    this.answers.set(operation, answer);
    this.#kept += bytes;
  }
}

/**
 * Recent documents with their plans, up to a number of bytes. Documents that were used twice are kept separately from those
 * used once: a flood of unique documents only replaces itself.
 */
export class Documents {
  readonly #most: number;
  /** Least recently used first. */
  readonly #once = new Map<string, KnownDocument>();
  readonly #again = new Map<string, KnownDocument>();
  /** The cached documents, with the bytes they were counted with: a document grows with its plans. */
  readonly #counted = new Map<KnownDocument, number>();
  #bytes = 0;
  #bytesAgain = 0;

  /** @param most bytes */
  constructor(most: number) {
    this.#most = most;
  }

  /** Cached bytes and documents. */
  get size(): { bytes: number; documents: number } {
    return { bytes: this.#bytes, documents: this.#counted.size };
  }

  find(text: string): KnownDocument | undefined {
    const again = this.#again.get(text);
    if (again) {
      this.#again.delete(text);
      this.#again.set(text, again);
      return again;
    }
    const once = this.#once.get(text);
    if (!once) return undefined;
    this.#once.delete(text);
    this.#again.set(text, once);
    this.#bytesAgain += this.#counted.get(once)!;
    // Documents that are used repeatedly have most of the space, but never all of it.
    while (this.#bytesAgain > this.#most * 0.8 && this.#again.size > 1) this.#demote();
    return once;
  }

  /** Finds a document without counting it as a use. */
  peek(text: string): KnownDocument | undefined {
    return this.#again.get(text) ?? this.#once.get(text);
  }

  keep(document: KnownDocument): void {
    this.#once.set(document.text, document);
    this.weigh(document);
  }

  /** Counts a document again after it got a plan or an answer, which may evict it. */
  weigh(document: KnownDocument): void {
    const isAgain = this.#again.get(document.text) === document;
    if (!isAgain && this.#once.get(document.text) !== document) return;
    const change = document.bytes - (this.#counted.get(document) ?? 0);
    this.#counted.set(document, document.bytes);
    this.#bytes += change;
    if (isAgain) this.#bytesAgain += change;
    while (this.#bytes > this.#most) this.#drop();
  }

  #demote(): void {
    const [oldest] = this.#again.values();
    this.#again.delete(oldest!.text);
    this.#bytesAgain -= this.#counted.get(oldest!)!;
    this.#once.set(oldest!.text, oldest!);
  }

  #drop(): void {
    if (this.#once.size === 0) this.#demote();
    const [oldest] = this.#once.values();
    this.#once.delete(oldest!.text);
    this.#bytes -= this.#counted.get(oldest!)!;
    this.#counted.delete(oldest!);
  }
}
