/**
 * The evaluated config of a step for one execution: conditions, variables and texts. Loaded by the threads that compute.
 */
import { sanitizeMailHtml } from "../providers/mail/sanitizeHtml.ts";
import { holds } from "./conditions.ts";
import { lookUp } from "./paths.ts";
import { createWriter } from "./templates.ts";

/** A step of a workflow, as in its definition. */
export interface Step {
  id: string;
  type: string;
  config: Record<string, unknown>;
}

/**
 * @throws Error with a sentence for the reader of the execution.
 * @throws BudgetExceeded if all texts of the step together, or its condition, exceed the budget of a step
 */
export function inputOf({ type, config }: Step, data: Record<string, unknown>): Record<string, unknown> {
  if (type === "BRANCH") return { result: holds(config.condition, data) };
  if (type === "WAIT") return { until: lookUp(String(config.until), data) };
  const { write, writeAll } = createWriter(data);
  const { html, ...texts } = config;
  const input = writeAll(texts) as Record<string, unknown>;
  if (html !== undefined)
    input.html = typeof html === "string" ? sanitizeMailHtml(write(html, { html: true })) : html;
  return input;
}
