/**
 * Texts of workflows: Liquid templates without access to files, bounded in time and memory. Which variables there are is data of
 * the database; this says which ones a template reads, and renders it.
 */
import { Liquid, type Template } from "liquidjs";

const limits = { parseLimit: 100_000, renderLimit: 500, memoryLimit: 2_000_000 };

const engines = { text: createEngine(false), html: createEngine(true) };

function createEngine(html: boolean): Liquid {
  const engine = new Liquid({
    ...limits,
    strictFilters: true,
    // What may be read was checked with the definition; a value that is not there is an empty text.
    strictVariables: false,
    ownPropertyOnly: true,
    templates: {},
    ...(html ? { outputEscape: "escape" as const } : {}),
  });
  // Nothing to include, nothing to lay out.
  for (const tag of ["include", "render", "layout", "block"]) delete engine.tags[tag];
  engine.registerFilter("money", (value: unknown) => {
    const amount = Number(value);
    return value === null || value === undefined || value === "" || !Number.isFinite(amount)
      ? ""
      : amount.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  });
  return engine;
}

/** What reading a template came to: the variables that it reads, as paths, or why it cannot be read. */
export type TemplateCheck = { variables: string[][] } | { fault: string };

/** Reads a template. */
export function checkTemplate(text: string): TemplateCheck {
  let parsed: Template[];
  try {
    parsed = engines.text.parse(text);
  } catch (error) {
    return { fault: `this template cannot be read: ${firstLine(error)}.` };
  }
  const variables = new Map<string, string[]>();
  for (const segments of engines.text.globalVariableSegmentsSync(parsed)) {
    // A name that is itself a variable, such as lead[x], is known only when the text is written: refused.
    if (segments.some((segment) => Array.isArray(segment)))
      return {
        fault: "a variable is named in full, such as lead.name, and not by the value of another one.",
      };
    variables.set(segments.join("."), segments.map(String));
  }
  return { variables: [...variables.values()] };
}

/** Whether a text is more than itself. */
export function isTemplate(text: string): boolean {
  return /\{[{%]/.test(text);
}

/**
 * Writes a text.
 * @param html whether values are escaped for HTML.
 * @throws Error with a sentence for whoever reads the execution.
 */
export function renderTemplate(text: string, data: object, { html = false } = {}): string {
  if (!isTemplate(text)) return text;
  try {
    const written = engines[html ? "html" : "text"].parseAndRenderSync(text, data) as string;
    // As PostgreSQL takes it: a filter may have cut a character in two, or made a NUL.
    return written.toWellFormed().replaceAll("\0", "\uFFFD");
  } catch (error) {
    throw new Error(`The template cannot be written: ${firstLine(error)}.`, { cause: error });
  }
}

/** Writes every text in a JSON value. */
export function renderTemplates(value: unknown, data: object): unknown {
  if (typeof value === "string") return renderTemplate(value, data);
  if (Array.isArray(value)) return value.map((element) => renderTemplates(element, data));
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [key, renderTemplates(member, data)]),
    );
  return value;
}

/** The value of a variable such as reservation.expiresAt; null where there is none. */
export function lookUp(path: string, data: unknown): unknown {
  let value = data;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return null;
    value = (value as Record<string, unknown>)[name];
  }
  return value ?? null;
}

function firstLine(error: unknown): string {
  return (error as Error).message
    .split("\n", 1)[0]!
    .replace(/, line:(\d+), col:(\d+)$/, " (line $1, column $2)");
}
