/** Erasure from the objects of archived events: they are written without it, and the former ones are deleted. */
import type { JobHelpers } from "graphile-worker";
import { transaction } from "../database/transaction.ts";
import { packEvents, readObject, storeObject, type EventObject } from "./eventObjects.ts";

type Helpers = Pick<JobHelpers, "query" | "withPgClient" | "fileStore" | "abortSignal">;

interface ToErase extends EventObject {
  from_sequence: string;
  to_sequence: string;
  amount: number;
}

interface Erased {
  erased: string;
  sequences: string[] | null;
  applied: string[];
  named: number;
}

/**
 * Erases from all objects of an organization what was erased from their events, and, for the erasure of a person, texts that name them. In
 * the end, the store has no former object.
 * @throws Error if an object was replaced meanwhile; the job is retried
 */
export async function eraseArchivedEvents(
  helpers: Helpers,
  { organizationId, erasureId = null }: { organizationId: string; erasureId?: string | null },
): Promise<void> {
  const { query, abortSignal } = helpers;
  for (let after = "0"; ;) {
    abortSignal.throwIfAborted();
    const { rows } = await query<ToErase>("select * from app_private.archives_to_erase($1, $2, $3)", [
      organizationId,
      erasureId,
      after,
    ]);
    const [object] = rows;
    if (!object) break;
    await eraseObject(helpers, { organizationId, erasureId }, object);
    after = object.from_sequence;
  }
  await discardObjects(helpers, organizationId, "0");
}

async function eraseObject(
  { query, fileStore }: Helpers,
  { organizationId, erasureId }: { organizationId: string; erasureId: string | null },
  object: ToErase,
): Promise<void> {
  const { rows } = await query<Erased>("select * from app_private.erased_archive($1, $2, $3)", [
    object.checksum,
    erasureId,
    await readObject(fileStore, object),
  ]);
  const [erased] = rows;
  if (!erased) return;
  const successor = await packEvents(erased.erased);
  // Only what was erased before; nothing of it is left.
  const isSame = successor.checksum === object.checksum;
  if (!isSame) {
    await query("select app_private.announce_event_archive($1, $2, $3, $4, $5, $6)", [
      organizationId,
      object.from_sequence,
      object.to_sequence,
      object.amount,
      successor.checksum,
      successor.filesize,
    ]);
    await storeObject(fileStore, successor);
  }
  const { rows: replaced } = await query<{ done: boolean }>(
    "select app_private.replace_event_archive($1, $2, $3, $4, $5, $6) as done",
    [
      object.checksum,
      successor.checksum,
      erased.sequences ?? [],
      erased.applied,
      erasureId,
      isSame ? 0 : erased.named,
    ],
  );
  if (!replaced[0]!.done)
    throw new Error("An object of archived events was replaced while it was erased from.");
}

/** Deletes objects of an organization that are not part of its archive, and are that old. */
export async function discardObjects(
  { withPgClient, fileStore }: Pick<Helpers, "withPgClient" | "fileStore">,
  organizationId: string,
  age: string,
): Promise<void> {
  let deleted: number;
  do {
    deleted = await withPgClient((client) =>
      transaction(client, async () => {
        const { rows } = await client.query<{ checksum: string }>(
          "select checksum from app_private.discard_event_archives($1, $2) checksum",
          [organizationId, age],
        );
        await fileStore.delete(rows.map(({ checksum }) => checksum));
        return rows.length;
      }),
    );
  } while (deleted > 0);
}
