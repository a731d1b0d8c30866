/** The body of an event in the fields of another system. Loaded by the threads that compute (src/compute). */
import { BudgetExceeded } from "./budget.ts";
import { isTemplate, lookUp } from "./paths.ts";
import { checkTemplate, createWriter, type Writer } from "./templates.ts";

/** Their field → the path of one of ours, such as data.email, or a Liquid template over the event. */
export type Mapping = Record<string, string>;

const path = /^[a-zA-Z]\w*(\.\w+){0,9}$/;

/** Why a mapping cannot be, and where; null where it can. */
export function checkMapping(mapping: Mapping): { at: string; message: string } | null {
  for (const [name, source] of Object.entries(mapping)) {
    const at = `config.mapping.${name}`;
    if (isTemplate(source)) {
      const checked = checkTemplate(source);
      if ("fault" in checked) return { at, message: `${at}: ${checked.fault}` };
    } else if (!path.test(source)) {
      return {
        at,
        message: `${at} is the path of a field of the event, such as data.email, or a template, such as {{ data.email | upcase }}.`,
      };
    }
  }
  return null;
}

/**
 * What an event has not is null; a template that cannot be written is null too, rather than holding all others up.
 * @throws BudgetExceeded where all templates together take more than a step may take
 */
export function mapped(mapping: Mapping, event: object): Record<string, unknown> {
  const writer = createWriter(event);
  return Object.fromEntries(
    Object.entries(mapping).map(([name, source]) => [
      name,
      isTemplate(source) ? written(writer, source) : lookUp(source, event),
    ]),
  );
}

function written({ write }: Writer, template: string): string | null {
  try {
    return write(template);
  } catch (error) {
    if (error instanceof BudgetExceeded) throw error;
    return null;
  }
}
