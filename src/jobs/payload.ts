/** A payload is JSON that an older version of the service may have written: nothing about it is certain. */

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

function member(payload: unknown, name: string): unknown {
  return typeof payload === "object" && payload !== null
    ? (payload as Record<string, unknown>)[name]
    : undefined;
}

/**
 * The id of the record that a job is about.
 * @throws Error when the payload has no such member that is a UUID.
 */
export function idOf(payload: unknown, name = "id"): string {
  const value = member(payload, name);
  if (typeof value !== "string" || !uuid.test(value)) throw new Error(`The job's payload has no ${name}.`);
  return value;
}

/**
 * The ids of several records of the payload.
 * @throws Error when the payload has no such list of UUIDs.
 */
export function idsOf(payload: unknown, name: string): string[] {
  const value = member(payload, name);
  if (!Array.isArray(value) || !value.every((id) => typeof id === "string" && uuid.test(id)))
    throw new Error(`The job's payload has no ${name}.`);
  return value as string[];
}

/**
 * A whole number of the payload.
 * @throws Error when the payload has no such member.
 */
export function numberOf(payload: unknown, name: string): number {
  const value = member(payload, name);
  if (!Number.isSafeInteger(value)) throw new Error(`The job's payload has no ${name}.`);
  return value as number;
}
