import type { JobHelpers, Task } from "graphile-worker";
import { sha256, MOST_BYTES, MOST_EVENTS, packEvents, storeObject } from "../archives/eventObjects.ts";
import { discardObjects, eraseArchivedEvents } from "../archives/eraseArchivedEvents.ts";

/** Organizations per statement. */
const organizations = 100;
/** How often the events of an object may change while it is written. */
const attempts = 3;
/** Objects that are that old and not part of an archive were left behind by a process that died. */
const abandoned = "1 hour";

interface Next {
  from_sequence: string;
  to_sequence: string;
  amount: number;
  content: string;
}

/**
 * Moves the content of old events to the file store, in the order of their sequences: stores an object, and then empties its events, in one
 * transaction. Idempotent: a process that dies in between leaves an object that the next run overwrites or discards.
 */
const task: Task = async (_payload, helpers) => {
  const failures: unknown[] = [];
  // An organization with an object that cannot be read must not prevent the others from being archived.
  const attempt = (work: Promise<void>) => work.catch((error: unknown) => void failures.push(error));
  for await (const organizationId of idsOf(helpers, "archived_events_to_erase"))
    await attempt(eraseArchivedEvents(helpers, { organizationId }));
  for await (const id of idsOf(helpers, "archiving_organizations")) await attempt(archiveAll(helpers, id));
  if (failures.length > 0)
    throw new AggregateError(failures, `Archiving failed: ${(failures[0] as Error).message}`);
};

async function archiveAll(helpers: JobHelpers, id: string): Promise<void> {
  await discardObjects(helpers, id, abandoned);
  while (!helpers.abortSignal.aborted && (await archiveNext(helpers, id)));
}

/** Organizations by id, until the service stops. */
async function* idsOf(
  { query, abortSignal }: JobHelpers,
  source: "archived_events_to_erase" | "archiving_organizations",
): AsyncGenerator<string> {
  for (let last: string | null = null; ;) {
    const { rows }: { rows: { id: string }[] } = await query(
      `select id from app_private.${source}($1, $2) id`,
      [last, organizations],
    );
    for (const { id } of rows) {
      if (abortSignal.aborted) return;
      yield id;
    }
    if (rows.length < organizations) return;
    last = rows.at(-1)!.id;
  }
}

/** @returns whether there was something to archive */
async function archiveNext(helpers: JobHelpers, organizationId: string): Promise<boolean> {
  const { query, fileStore } = helpers;
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const { rows } = await query<Next>(
      "select from_sequence, to_sequence, amount, content from app_private.next_event_archive($1, $2, $3)",
      [organizationId, MOST_EVENTS, MOST_BYTES],
    );
    const [next] = rows;
    if (!next) return false;
    const object = await packEvents(next.content);
    await query("select app_private.announce_event_archive($1, $2, $3, $4, $5, $6)", [
      organizationId,
      next.from_sequence,
      next.to_sequence,
      next.amount,
      object.checksum,
      object.filesize,
    ]);
    await storeObject(fileStore, object);
    const { rows: recorded } = await query<{ done: boolean }>(
      "select app_private.record_event_archive($1, $2) as done",
      [object.checksum, sha256(next.content)],
    );
    if (recorded[0]!.done) return true;
    // Something was erased from them meanwhile, and nobody needs what was stored.
    await discardObjects(helpers, organizationId, "0");
  }
  throw new Error("The events of an object have changed each time while it was written.");
}

export default task;
