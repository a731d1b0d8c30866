/** A page of an organization's events. */

/** An event as visible to a viewer. */
export interface LiveEvent {
  readonly sequence: number;
  /** Such as lead.created. */
  readonly name: string;
  readonly projectId: string | null;
  readonly subjectType: string;
  readonly subjectId: string;
  /** Start of the transaction that wrote it, in milliseconds since 1970. */
  readonly occurredAt: number;
  /** JSON, as sent to webhooks. */
  readonly message: string;
}

/**
 * All events with `after < sequence <= upto` that the viewers of a feed may read. Derived representations are
 * computed once.
 */
export class Batch {
  readonly after: number;
  readonly upto: number;
  /** The latest sequence number when it was read. */
  readonly head: number;
  readonly events: readonly LiveEvent[];
  readonly #made = new Map<string, unknown>();

  constructor(after: number, upto: number, head: number, events: readonly LiveEvent[]) {
    this.after = after;
    this.upto = upto;
    this.head = head;
    this.events = events;
  }

  /** The memoized result of `make` for this key. */
  once<T>(key: string, make: () => T): T {
    if (!this.#made.has(key)) this.#made.set(key, make());
    return this.#made.get(key) as T;
  }
}

/** Filter of a subscriber: all given conditions must match. */
export interface EventFilter {
  /** Event names, such as lead.created, or patterns, such as lead.* or *. */
  readonly names?: readonly string[] | undefined;
  readonly projectId?: string | undefined;
  readonly subjectType?: string | undefined;
  readonly subjectId?: string | undefined;
  /** Any of these. */
  readonly subjectIds?: ReadonlySet<string>;
}

/** Whether an event matches a filter; same semantics as eventsConnection. */
export function matches(event: LiveEvent, filter: EventFilter): boolean {
  const { names, projectId, subjectType, subjectId, subjectIds } = filter;
  if (projectId !== undefined && event.projectId !== projectId) return false;
  if (subjectType !== undefined && event.subjectType !== subjectType) return false;
  if (subjectId !== undefined && event.subjectId !== subjectId) return false;
  if (subjectIds && !subjectIds.has(event.subjectId)) return false;
  if (names === undefined) return true;
  const family = `${event.name.split(".", 1)[0]}.*`;
  return names.includes(event.name) || names.includes(family) || names.includes("*");
}
