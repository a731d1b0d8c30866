/** What telling a template or a path needs, without the library. */

/** Whether a text is more than itself. */
export function isTemplate(text: string): boolean {
  return /\{[{%]/.test(text);
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
