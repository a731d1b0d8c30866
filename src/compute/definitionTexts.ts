/** Parses the templates of a definition. Loaded by the threads that compute. */
import { BudgetExceeded, budgets } from "./budget.ts";
import { isTemplate } from "./paths.ts";
import { checkTemplate, type TemplateCheck } from "./templates.ts";

/** By the path of each template. */
export type TextChecks = Record<string, TemplateCheck>;

/** More than any definition has; the database refuses larger ones for their size. */
const most = 2000;

/**
 * Parses every text in JSON values that could be a template; none if all of them together are too long.
 * @param configs each with its path.
 * @throws BudgetExceeded if all of them together are longer than a definition may be
 */
export function readTexts(configs: readonly { config: unknown; at: string }[]): TextChecks {
  const texts = new Map<string, string>();
  let length = 0;
  const find = (value: unknown, at: string, depth: number): void => {
    if (depth > 12 || texts.size > most) return;
    if (typeof value === "string") {
      if (!isTemplate(value)) return;
      texts.set(at, value);
      length += value.length;
    } else if (Array.isArray(value)) {
      for (const [index, element] of value.entries()) find(element, `${at}[${index}]`, depth + 1);
    } else if (typeof value === "object" && value !== null) {
      for (const [key, member] of Object.entries(value)) find(member, `${at}.${key.slice(0, 50)}`, depth + 1);
    }
  };
  for (const { config, at } of configs) find(config, at, 0);
  if (length > budgets.definition)
    throw new BudgetExceeded(
      `The templates of a workflow have at most ${budgets.definition.toLocaleString("en")} characters together.`,
    );
  return Object.fromEntries([...texts].map(([at, text]) => [at, checkTemplate(text)]));
}
