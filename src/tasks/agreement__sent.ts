import type { Task } from "graphile-worker";
import { idOf } from "../jobs/payload.ts";
import { SigningFailed, type Envelope } from "../providers/signing/index.ts";
import { callProvider } from "../signing/callProvider.ts";

/** Returned by app_private.envelope_to_send. */
interface ToSend extends Omit<Envelope, "expiresAt" | "reminderDays" | "document"> {
  expiresAt: string | null;
  reminderDays: number | null;
  document: { filename: string; size: number; checksum: string };
}

/**
 * Submits the agreement {id} to the provider at which it is signed. Idempotent: the provider identifies it by its transaction id. If the
 * provider refuses it, it is voided with the reason.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const { query, fileStore } = helpers;
  const { rows } = await query<{ envelope: ToSend | null }>(
    "select app_private.envelope_to_send($1) as envelope",
    [id],
  );
  const found = rows[0]!.envelope;
  if (!found) return;
  const { checksum, ...document } = found.document;
  const content = async () => {
    const stored = await fileStore.get(checksum);
    if (!stored) throw new Error("The file of an agreement is not in the store.");
    return stored;
  };
  try {
    await callProvider(helpers, id, async ({ provider }) => {
      const envelopeId = await provider.send({
        ...found,
        expiresAt: found.expiresAt === null ? null : new Date(found.expiresAt),
        reminderDays: found.reminderDays ?? undefined,
        document: { ...document, content },
      });
      await query("select app_private.note_envelope($1, $2)", [id, envelopeId]);
    });
  } catch (error) {
    if (!(error instanceof SigningFailed) || error.kind !== "REFUSED") throw error;
    await query("select app_private.refuse_envelope($1, $2)", [id, error.message]);
  }
};

export default task;
