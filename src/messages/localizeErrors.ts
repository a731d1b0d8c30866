import type { Language } from "./catalogue.ts";
import { localize } from "./recognize.ts";

/** An error of a response. */
interface Outgoing {
  message: string;
  readonly path?: readonly (string | number)[] | undefined;
  extensions?: Record<string, unknown>;
}

/** An invalid field of an input. */
export interface BadField {
  /** Its path in the input, such as `agent.email`, like `field`. */
  path: string;
  key?: string;
  parameters?: string[];
  message: string;
}

/** A message with its key and parameters, for clients that translate it themselves. */
function localized(message: string, language: Language): Omit<BadField, "path"> {
  const { key, parameters, message: translated } = localize(message, language);
  return {
    ...(key !== undefined && { key }),
    ...(parameters.length > 0 && { parameters }),
    message: translated,
  };
}

/**
 * Localizes the errors of an answer and adds `key` and `parameters` to each. `fields` lists all known invalid fields, the one of the error
 * first: those that the database found, or those of all variables that could not be coerced.
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
    const { message, ...more } = localized(error.message, language);
    error.message = message;
    Object.assign(extensions, more);
    if (fields.length > 0)
      extensions.fields = fields.map(({ path, message: text }) => ({ path, ...localized(text, language) }));
  }
  // A request that is refused before execution has one error: the first one lists everything.
  const [first, ...others] = errors;
  const ofRequest = others.filter(({ path }) => path === undefined);
  if (first?.extensions?.fields && first.path === undefined && ofRequest.length > 0)
    first.extensions.fields = errors.flatMap(({ extensions }) => (extensions?.fields ?? []) as BadField[]);
}
