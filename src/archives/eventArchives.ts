/**
 * The content of archived events. Objects are read and decompressed a few at a time, and the lines of the latest ones are
 * kept. The database decides what of a line its reader gets, and whether the object is still that of the event.
 */
import { FairSemaphore } from "../admission/fairSemaphore.ts";
import type { Party } from "../admission/party.ts";
import type { FileStore } from "../providers/files/index.ts";
import { ArchiveUnreadable, linesBySequence, readObject, type EventObject } from "./eventObjects.ts";

/** An archived event: its object and its place there. */
export interface ArchivedEvent extends EventObject {
  readonly event_id: string;
  readonly sequence: string;
}

/** An archived event with its line. */
export interface ArchivedLine extends ArchivedEvent {
  readonly line: string;
}

/** What the reader of an event may read of its content. */
export interface EventContent {
  readonly data: unknown;
  readonly changes: unknown;
}

interface ArchiveReader {
  /** Whose objects are read in turn with those of others. */
  readonly party: Party;
  /** The objects of these events; nothing for those that are not archived. */
  find(ids: readonly string[]): Promise<readonly ArchivedEvent[]>;
  /** The contents by event; nothing for events whose object is no longer that one, or that the reader may not see. */
  read(lines: readonly ArchivedLine[]): Promise<readonly (EventContent & { readonly event_id: string })[]>;
}

/**
 * A reader by the functions for viewers, which apply policies and masks.
 * @param query runs a statement as the viewer
 */
export const viewerReader = (
  party: Party,
  query: <Row>(text: string, values: unknown[]) => Promise<readonly Row[]>,
): ArchiveReader => ({
  party,
  find: (ids) => query("select * from app_hidden.event_archives($1)", [ids]),
  read: (lines) =>
    query("select * from app_hidden.archived_contents($1, $2, $3)", [
      lines.map(({ event_id }) => event_id),
      lines.map(({ checksum }) => checksum),
      lines.map(({ line }) => line),
    ]),
});

/** Reports objects that cannot be read. */
interface ArchiveLog {
  warn(fields: object, message: string): void;
}

interface Known {
  readonly lines: ReadonlyMap<string, string>;
  readonly bytes: number;
}

/** Objects that are read and decompressed at the same time. */
const CONCURRENT = 4;
/** Characters of lines that are kept. */
const MOST_KEPT = 32_000_000;
/** Characters of lines after which the database reads what there is, before more objects are read. */
const MOST_AT_ONCE = 8_000_000;
/** An object is replaced now and then, when a person is erased. */
const ATTEMPTS = 3;

/** A copy: a part of a string keeps the whole in memory. */
const detached = (line: string): string => Buffer.from(line).toString();

export class EventArchives {
  readonly #store: FileStore;
  readonly #log: ArchiveLog;
  readonly #places = new FairSemaphore({ capacity: CONCURRENT });
  /** The latest ones last. */
  readonly #known = new Map<string, Known>();
  readonly #reading = new Map<string, Promise<Known>>();
  #kept = 0;

  constructor(store: FileStore, log: ArchiveLog) {
    this.#store = store;
    this.#log = log;
  }

  /** Characters of lines that are kept. */
  get kept(): number {
    return this.#kept;
  }

  /**
   * The contents of archived events by id: an error where the object cannot be read, nothing where the reader may not see
   * the event or it is not archived. Two statements for any number of events, unless they are large.
   */
  async contents(
    ids: readonly string[],
    { party, find, read }: ArchiveReader,
  ): Promise<ReadonlyMap<string, EventContent | ArchiveUnreadable>> {
    const contents = new Map<string, EventContent | ArchiveUnreadable>();
    let left = [...new Set(ids)];
    for (let attempt = 1; left.length > 0 && attempt <= ATTEMPTS; attempt += 1) {
      const { failed, unread } = await this.#readFound(await find(left), { party, read }, contents);
      // The object of an event may have been replaced meanwhile.
      left = [...failed, ...unread];
    }
    for (const error of new Set(contents.values()))
      if (error instanceof ArchiveUnreadable)
        this.#log.warn(
          { event: "archive.unreadable", err: error },
          "An object of archived events cannot be read; the content of its events is unavailable.",
        );
    return contents;
  }

  /** Reads events from their objects. @returns those whose object cannot be read, and those that nothing was read of */
  async #readFound(
    found: readonly ArchivedEvent[],
    { party, read }: Pick<ArchiveReader, "party" | "read">,
    contents: Map<string, EventContent | ArchiveUnreadable>,
  ): Promise<{ failed: string[]; unread: Set<string> }> {
    const failed: string[] = [];
    const unread = new Set<string>();
    let lines: ArchivedLine[] = [];
    let size = 0;
    const flush = async () => {
      const given = lines;
      [lines, size] = [[], 0];
      for (const { event_id } of given) unread.add(event_id);
      for (const { event_id, data, changes } of given.length > 0 ? await read(given) : []) {
        contents.set(event_id, { data, changes });
        unread.delete(event_id);
      }
    };
    const ofObjects = [...Map.groupBy(found, ({ checksum }) => checksum).values()];
    for (let first = 0; first < ofObjects.length; first += CONCURRENT) {
      await Promise.all(
        ofObjects.slice(first, first + CONCURRENT).map(async (events) => {
          for (const { event, line } of await this.#tryLines(events, party)) {
            if (typeof line === "string") {
              lines.push({ ...event, line });
              size += line.length;
            } else {
              contents.set(event.event_id, line);
              failed.push(event.event_id);
            }
          }
        }),
      );
      if (size > MOST_AT_ONCE) await flush();
    }
    await flush();
    return { failed, unread };
  }

  /** The lines of events of one object. */
  async #tryLines(
    events: readonly ArchivedEvent[],
    party: Party,
  ): Promise<{ event: ArchivedEvent; line: string | ArchiveUnreadable }[]> {
    try {
      const lines = await this.#linesOf(events[0]!, party);
      return events.map((event) => {
        const line = lines.get(event.sequence);
        if (line !== undefined) return { event, line: detached(line) };
        const message = `The object ${event.checksum} lacks the event ${event.sequence}.`;
        return { event, line: new ArchiveUnreadable(message) };
      });
    } catch (error) {
      if (!(error instanceof ArchiveUnreadable)) throw error;
      return events.map((event) => ({ event, line: error }));
    }
  }

  async #linesOf(object: EventObject, party: Party): Promise<ReadonlyMap<string, string>> {
    const { checksum } = object;
    const known = this.#known.get(checksum);
    if (known) {
      this.#known.delete(checksum);
      this.#known.set(checksum, known);
      return known.lines;
    }
    let reading = this.#reading.get(checksum);
    if (!reading) {
      reading = this.#read(object, party).finally(() => this.#reading.delete(checksum));
      this.#reading.set(checksum, reading);
    }
    return (await reading).lines;
  }

  async #read(object: EventObject, party: Party): Promise<Known> {
    const release = await this.#places.acquire(party);
    try {
      const content = await readObject(this.#store, object);
      const known = { lines: linesBySequence(content), bytes: content.length };
      this.#known.set(object.checksum, known);
      this.#kept += known.bytes;
      for (const [checksum, { bytes }] of this.#known) {
        if (this.#kept <= MOST_KEPT) break;
        this.#known.delete(checksum);
        this.#kept -= bytes;
      }
      return known;
    } finally {
      release();
    }
  }
}
