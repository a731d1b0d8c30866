/** The body of an event in the fields of another system. Loaded by the threads of src/compute. */
import { BudgetExceeded } from "./budget.ts";
import { isTemplate, lookUp } from "./paths.ts";
import { checkTemplate, createWriter, type Writer } from "./templates.ts";

/** Their field → the path of one of ours, such as data.email, or a Liquid template over the event. */
export type Mapping = Record<string, string>;

const path = /^[a-zA-Z]\w*(\.\w+){0,9}$/;

/** Why a mapping is invalid, and where; null if it is valid. */
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
 * Values that an event does not have are null, and so are templates that cannot be rendered, so that they do not block the others.
 * @throws BudgetExceeded if all templates together exceed the budget of a step
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
