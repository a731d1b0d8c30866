import type { JobHelpers, Task } from "graphile-worker";
import { eraseArchivedEvents } from "../archives/eraseArchivedEvents.ts";
import { idOf } from "../jobs/payload.ts";
import { writeErasureCertificate, type ErasureFacts } from "../pdf/writeCertificate.ts";
import { storeCertificate } from "../jobs/storeCertificate.ts";

/** Rows per transaction, which locks those that name the person. */
const batch = 2_000;

/**
 * Completes the erasure {id}: redacts the person's name in texts of the organization, also of archived events, and writes the certificate.
 * Idempotent: another run finds nothing to erase and writes no second certificate.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const { query, abortSignal } = helpers;
  const { rows } = await query<{ relation: string }>(
    "select relation from app_private.erasure_relations() relation",
  );
  for (const { relation } of rows) {
    let last: string | null = null;
    do {
      abortSignal?.throwIfAborted();
      const found: { rows: { last: string | null }[] } = await query(
        "select app_private.erase_texts($1, $2, $3, $4) as last",
        [id, relation, last, batch],
      );
      last = found.rows[0]!.last;
    } while (last !== null);
  }
  const { rows: found } = await query<{ organizationId: string | null }>(
    `select app_private.organization_of_erasure($1) as "organizationId"`,
    [id],
  );
  const { organizationId } = found[0]!;
  if (organizationId !== null) await eraseArchivedEvents(helpers, { organizationId, erasureId: id });
  await query("select app_private.erase_private_texts($1)", [id]);
  await certify(helpers, id);
};

async function certify({ query, fileStore }: JobHelpers, id: string): Promise<void> {
  const { rows } = await query<{ facts: ErasureFacts | null }>(
    "select app_private.erasure_certificate($1) as facts",
    [id],
  );
  const { facts } = rows[0]!;
  if (!facts) return;
  const checksum = await storeCertificate(fileStore, await writeErasureCertificate(facts), (...content) =>
    query<{ stored: boolean }>("select app_private.announce_erasure_certificate($1, $2, $3) as stored", [
      id,
      ...content,
    ]),
  );
  await query("select app_private.complete_erasure($1, $2)", [id, checksum]);
}

export default task;
