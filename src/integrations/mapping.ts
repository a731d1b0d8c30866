/** The body of an event in the fields of another system. */
import { checkTemplate, isTemplate, lookUp, renderTemplate } from "../workflows/templates.ts";
import { Misconfigured } from "./adapter.ts";

/** Their field → the path of one of ours, such as data.email, or a Liquid template over the event. */
export type Mapping = Record<string, string>;

const path = /^[a-zA-Z]\w*(\.\w+){0,9}$/;

/** @throws Misconfigured */
export function checkMapping(mapping: Mapping): void {
  for (const [name, source] of Object.entries(mapping)) {
    const at = `config.mapping.${name}`;
    if (isTemplate(source)) {
      const checked = checkTemplate(source);
      if ("fault" in checked) throw new Misconfigured(at, `${at}: ${checked.fault}`);
    } else if (!path.test(source)) {
      throw new Misconfigured(
        at,
        `${at} is the path of a field of the event, such as data.email, or a template, such as {{ data.email | upcase }}.`,
      );
    }
  }
}

/** What an event has not is null; a template that cannot be written is null too, rather than holding all others up. */
export function mapped(mapping: Mapping, event: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(mapping).map(([name, source]) => [
      name,
      isTemplate(source) ? written(source, event) : lookUp(source, event),
    ]),
  );
}

function written(template: string, event: object): string | null {
  try {
    return renderTemplate(template, event);
  } catch {
    return null;
  }
}
