/** Tells templates and paths apart without loading the library. */

/** Whether a text is a template, and not only literal text. */
export function isTemplate(text: string): boolean {
  return /\{[{%]/.test(text);
}

/** The value of a variable such as reservation.expiresAt; null if there is none. */
export function lookUp(path: string, data: unknown): unknown {
  let value = data;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return null;
    value = (value as Record<string, unknown>)[name];
  }
  return value ?? null;
}
