import { CompiledOperation } from "./compiledQueries.ts";
import { type DocumentNode, type GraphQLError, Kind, visit } from "postgraphile/graphql";

/** What a plan keeps in memory for each of its steps, in bytes, as measured: 4,300 to 5,200. */
const BYTES_PER_STEP = 5_000;
/** What a parsed document keeps for each character of its text: tokens, nodes and their places in the text. */
const BYTES_PER_CHARACTER = 80;
const BYTES_AT_LEAST = 2_000;
/** Plans that are kept of one operation: variables in `@include` and `@skip` make several. */
export const PLANS_PER_OPERATION = 8;

/** The variables of a document's conditions, `@include(if: $name)` and `@skip(if: $name)`, each once. */
function conditionVariables(text: string, document: DocumentNode): readonly string[] {
  // PERF: most documents have no directive, and to visit all nodes takes a while.
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

/** A document that was parsed and validated, with everything that is kept for it. */
export class KnownDocument {
  readonly text: string;
  readonly result: { document: DocumentNode } | { errors: readonly GraphQLError[] };
  /** Answers that depend on nothing but the document, by the name of the operation. */
  readonly answers = new Map<string, object>();
  /** By the name of the operation. */
  readonly #compiled = new Map<string, CompiledOperation>();
  readonly #plans = new WeakSet<object>();
  /** How many plans were made, by the name of the operation. */
  readonly #planned = new Map<string, number>();
  /** By the name of the operation: for which values of conditions there is a plan, least recently used first. */
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

  /** Bytes that this document, its plans and its answers are thought to keep. */
  get bytes(): number {
    return BYTES_AT_LEAST + this.text.length * BYTES_PER_CHARACTER + this.#kept;
  }

  /**
   * Whether executing this operation with these variables will find its plan. Where more plans were made than the conditions account
   * for, nobody knows, and it will not.
   */
  isPlanned(operation: string, variables: Record<string, unknown> = {}): boolean {
    const known = this.#conditions.get(operation);
    return (
      known !== undefined &&
      known.has(this.#key(variables)) &&
      (this.#planned.get(operation) ?? 0) <= known.size
    );
  }

  /** Notes that there is a plan of an operation for these variables; call it whenever the operation was executed. */
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
   * What an operation is compiled to; undefined for a document that is refused, or before its operation was planned.
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

  /** Counts the bytes of what was compiled. */
  keepCompiled(bytes: number): void {
    this.#kept += bytes;
  }

  keepAnswer(operation: string, answer: object, bytes: number): void {
    this.answers.set(operation, answer);
    this.#kept += bytes;
  }
}

/**
 * The documents of late, as many as fit into so many bytes with their plans. What was asked a second time is kept apart from
 * what came once: a flood of documents that nobody repeats replaces only itself.
 */
export class Documents {
  readonly #most: number;
  /** Least recently used first. */
  readonly #once = new Map<string, KnownDocument>();
  readonly #again = new Map<string, KnownDocument>();
  /** Of what is kept, with the bytes it was counted with: a document grows by its plans. */
  readonly #counted = new Map<KnownDocument, number>();
  #bytes = 0;
  #bytesAgain = 0;

  /** @param most bytes */
  constructor(most: number) {
    this.#most = most;
  }

  /** Bytes and documents that are kept. */
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
    // What is used again has most of the room, but never all of it.
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

  /** Counts a document anew after it got a plan or an answer; it may be dropped for it. */
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
