/**
 * Texts of workflows: Liquid templates without access to files, with limits on time and memory. The database defines
 * which variables exist; this file determines which ones a template reads, and renders it. Loaded by the threads of
 * src/compute. Only `isTemplate` and `lookUp` of paths.ts run elsewhere.
 */
import { Context, Liquid, toValue, toValueSync, type Template } from "liquidjs";
import { cpuMs } from "../base/cpuTime.ts";
import { BudgetExceeded, budgets } from "./budget.ts";
import { isTemplate } from "./paths.ts";

const engines = { text: createEngine(false), html: createEngine(true) };

function createEngine(html: boolean): Liquid {
  const engine = new Liquid({
    parseLimit: 100_000,
    memoryLimit: budgets.memory,
    strictFilters: true,
    // Variables were checked with the definition; a missing value is an empty text.
    strictVariables: false,
    ownPropertyOnly: true,
    templates: {},
    ...(html ? { outputEscape: "escape" as const } : {}),
  });
  // There are no files to include and no layouts.
  for (const tag of ["include", "render", "layout", "block"]) delete engine.tags[tag];
  engine.registerFilter("money", (value: unknown) => {
    const amount = Number(value);
    return value === null || value === undefined || value === "" || !Number.isFinite(amount)
      ? ""
      : amount.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  });
  // The library counts the output of filters, but not output that is written by a loop, or by {% capture %}, which
  // can double a text.
  const { renderer } = engine;
  const render = renderer.renderTemplates.bind(renderer);
  renderer.renderTemplates = (templates, context, emitter) =>
    render(templates, context, emitter ?? new CountingEmitter(context));
  return engine;
}

/**
 * PERF: a step runs in many executions with the same texts. Maximum number of characters of the parsed templates that
 * each engine caches.
 */
const mostKept = 200_000;
const kept = new Map([engines.text, engines.html].map((engine) => [engine, new Map<string, Template[]>()]));
const lengths = new Map<Liquid, number>();

function parsedBy(engine: Liquid, text: string): Template[] {
  const known = kept.get(engine)!;
  let parsed = known.get(text);
  if (!parsed) {
    parsed = engine.parse(text);
    const length = (lengths.get(engine) ?? 0) + text.length;
    if (length > mostKept) known.clear();
    lengths.set(engine, length > mostKept ? text.length : length);
    known.set(text, parsed);
  }
  return parsed;
}

/** Collects the output, and counts it. */
class CountingEmitter {
  buffer = "";
  private readonly context: Context;

  constructor(context: Context) {
    this.context = context;
  }

  write(value: unknown): void {
    const text = written(value);
    this.context.memoryLimit.use(text.length);
    this.buffer += text;
  }
}

/** A value as the library prints it. */
function written(given: unknown): string {
  const value: unknown = toValue(given);
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  return Array.isArray(value) ? value.map(written).join("") : String(value);
}

/** Limits the CPU time of the thread, rather than elapsed time, which also passes while others use the processor. */
class TimeLimit {
  private readonly began = cpuMs();
  private readonly soonest = performance.now() + budgets.textsMs;

  check(): void {
    if (performance.now() > this.soonest && cpuMs() > this.began + budgets.textsMs)
      throw new Error("template render limit exceeded");
  }

  use(): void {}
}

/** The result of parsing a template: the variables that it reads, as paths, or the reason why it is invalid. */
export type TemplateCheck = { variables: string[][] } | { fault: string };

/** Parses a template. */
export function checkTemplate(text: string): TemplateCheck {
  let parsed: Template[];
  try {
    parsed = engines.text.parse(text);
  } catch (error) {
    return { fault: `this template cannot be read: ${firstLine(error)}.` };
  }
  const variables = new Map<string, string[]>();
  for (const segments of engines.text.globalVariableSegmentsSync(parsed)) {
    // A name that is itself a variable, such as lead[x], is only known when the text is rendered, so it is refused.
    if (segments.some((segment) => Array.isArray(segment)))
      return {
        fault: "a variable is named in full, such as lead.name, and not by the value of another one.",
      };
    variables.set(segments.join("."), segments.map(String));
  }
  return { variables: [...variables.values()] };
}

export interface Writer {
  /**
   * Renders a template.
   * @param html whether values are escaped for HTML
   * @throws Error with a sentence for readers of the execution
   * @throws BudgetExceeded
   */
  write(text: string, options?: { html?: boolean }): string;
  /** Renders each text in a JSON value. */
  writeAll(value: unknown): unknown;
}

/** Renders templates with the same data; they share one budget. */
export function createWriter(data: object): Writer {
  // Later contexts share the limits of the first one.
  const { memoryLimit } = new Context(data, engines.text.options, { sync: true });
  const renderLimit = new TimeLimit() as unknown as Context["renderLimit"];
  const write: Writer["write"] = (text, { html = false } = {}) => {
    if (!isTemplate(text)) return text;
    const engine = engines[html ? "html" : "text"];
    try {
      const context = new Context(
        data,
        engine.options,
        { sync: true },
        { memoryLimit, renderLimit, liquid: engine },
      );
      const parsed = parsedBy(engine, text);
      const result = toValueSync(engine.renderer.renderTemplates(parsed, context)) as string;
      // PostgreSQL accepts neither half of a surrogate pair, which a filter may have cut, nor NUL.
      return result.toWellFormed().replaceAll("\0", "\uFFFD");
    } catch (error) {
      const message = firstLine(error);
      if (/^(memory alloc|template render) limit exceeded/.test(message))
        throw new BudgetExceeded(
          `The texts of this step take more computing than a step may take (${budgets.textsMs} ms, ${budgets.memory.toLocaleString("en")} characters on the way): write less in loops, or divide the step.`,
          { cause: error },
        );
      throw new Error(`The template cannot be written: ${message}.`, { cause: error });
    }
  };
  const writeAll = (value: unknown): unknown => {
    if (typeof value === "string") return write(value);
    if (Array.isArray(value)) return value.map(writeAll);
    if (typeof value === "object" && value !== null)
      return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, writeAll(member)]));
    return value;
  };
  return { write, writeAll };
}

function firstLine(error: unknown): string {
  return (error as Error).message
    .split("\n", 1)[0]!
    .replace(/, line:(\d+), col:(\d+)$/, " (line $1, column $2)");
}
