/** Payloads are JSON that an older version of the service may have written, so they must be validated. */

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

function member(payload: unknown, name: string): unknown {
  return typeof payload === "object" && payload !== null
    ? (payload as Record<string, unknown>)[name]
    : undefined;
}

/**
 * Id of the record that a job is about.
 * @throws Error if the payload has no such field with a UUID
 */
export function idOf(payload: unknown, name = "id"): string {
  const value = member(payload, name);
  if (typeof value !== "string" || !uuid.test(value)) throw new Error(`The job's payload has no ${name}.`);
  return value;
}

/**
 * Ids of several records in the payload.
 * @throws Error if the payload has no such list of UUIDs
 */
export function idsOf(payload: unknown, name: string): string[] {
  const value = member(payload, name);
  if (!Array.isArray(value) || !value.every((id) => typeof id === "string" && uuid.test(id)))
    throw new Error(`The job's payload has no ${name}.`);
  return value as string[];
}

/**
 * An integer in the payload.
 * @throws Error if the payload has no such field
 */
export function numberOf(payload: unknown, name: string): number {
  const value = member(payload, name);
  if (!Number.isSafeInteger(value)) throw new Error(`The job's payload has no ${name}.`);
  return value as number;
}
