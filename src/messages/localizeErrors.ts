import type { Language } from "./catalogue.ts";
import { tell } from "./recognize.ts";

/** An error on its way out. */
interface Outgoing {
  message: string;
  readonly path?: readonly (string | number)[] | undefined;
  extensions?: Record<string, unknown>;
}

/** One bad field of an input. */
export interface BadField {
  /** Its path in the input, such as `agent.email`, as `field` has it. */
  path: string;
  key?: string;
  parameters?: string[];
  message: string;
}

/** A message with what a client translates it by. */
function told(message: string, language: Language): Omit<BadField, "path"> {
  const { key, parameters, message: said } = tell(message, language);
  return {
    ...(key !== undefined && { key }),
    ...(parameters.length > 0 && { parameters }),
    message: said,
  };
}

/**
 * Says the errors of an answer in a language and gives each its `key` and `parameters`. `fields` are all bad fields that are known, the
 * one of the error first: those that the database found, or those of all variables that could not be read.
 */
export function localizeErrors(errors: Outgoing[], language: Language): void {
  for (const error of errors) {
    const extensions = (error.extensions ??= {});
    const { field, code } = extensions;
    const found = (extensions.fields ?? []) as { path: string; message: string }[];
    const isBad = code === "BAD_USER_INPUT" && typeof field === "string";
    const fields =
      isBad && !found.some(({ path }) => path === field)
        ? [{ path: field as string, message: error.message }, ...found]
        : found;
    const { message, ...more } = told(error.message, language);
    error.message = message;
    Object.assign(extensions, more);
    if (fields.length > 0)
      extensions.fields = fields.map(({ path, message: text }) => ({ path, ...told(text, language) }));
  }
  // What is refused before anything runs is refused as one: its first error tells all of it.
  const [first, ...others] = errors;
  const ofRequest = others.filter(({ path }) => path === undefined);
  if (first?.extensions?.fields && first.path === undefined && ofRequest.length > 0)
    first.extensions.fields = errors.flatMap(({ extensions }) => (extensions?.fields ?? []) as BadField[]);
}
