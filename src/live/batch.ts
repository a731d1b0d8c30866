/** What was read of an organization's events at once. */

/** An event as a viewer may read it. */
export interface LiveEvent {
  readonly sequence: number;
  /** Such as lead.created. */
  readonly name: string;
  readonly projectId: string | null;
  readonly subjectType: string;
  readonly subjectId: string;
  /** When the transaction that wrote it began, in milliseconds since 1970. */
  readonly occurredAt: number;
  /** JSON, as webhooks are sent it. */
  readonly message: string;
}

/** All events with `after < sequence <= upto` that the viewers of a feed may read. What is made of it is made once. */
export class Batch {
  readonly after: number;
  readonly upto: number;
  /** The last sequence when it was read. */
  readonly head: number;
  readonly events: readonly LiveEvent[];
  readonly #made = new Map<string, unknown>();

  constructor(after: number, upto: number, head: number, events: readonly LiveEvent[]) {
    this.after = after;
    this.upto = upto;
    this.head = head;
    this.events = events;
  }

  /** What `make` gives the first time for this key. */
  once<T>(key: string, make: () => T): T {
    if (!this.#made.has(key)) this.#made.set(key, make());
    return this.#made.get(key) as T;
  }
}

/** Which events a subscriber wants: those that match all that is given. */
export interface EventFilter {
  /** Names such as lead.created, lead.* or *. */
  readonly names?: readonly string[] | undefined;
  readonly projectId?: string | undefined;
  readonly subjectType?: string | undefined;
  readonly subjectId?: string | undefined;
  /** One of these. */
  readonly subjectIds?: ReadonlySet<string>;
}

/** Whether an event matches a filter, as it would that of eventsConnection. */
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
