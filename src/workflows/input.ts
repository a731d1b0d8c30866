/** What the config of a step comes to for one execution: conditions are evaluated, variables looked up, texts written. */
import { holds } from "./conditions.ts";
import { lookUp, renderTemplate, renderTemplates } from "./templates.ts";

/** A step of a workflow, as its definition says. */
export interface Step {
  id: string;
  type: string;
  config: Record<string, unknown>;
}

/** @throws Error with a sentence for whoever reads the execution. */
export function inputOf({ type, config }: Step, data: Record<string, unknown>): Record<string, unknown> {
  if (type === "BRANCH") return { result: holds(config.condition, data) };
  if (type === "WAIT") return { until: lookUp(String(config.until), data) };
  const input = renderTemplates(config, data) as Record<string, unknown>;
  if (typeof config.html === "string") input.html = renderTemplate(config.html, data, { html: true });
  return input;
}
