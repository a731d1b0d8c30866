import type { Task } from "graphile-worker";
import { idOf } from "../jobs/payload.ts";
import { atProvider } from "../signing/atProvider.ts";

/**
 * Asks the provider of the agreement {id} to remind the signers whose turn it is. Not idempotent: another run may
 * remind them again.
 */
const task: Task = async (payload, helpers) => {
  await atProvider(helpers, idOf(payload), async ({ provider, envelope }) => {
    if (envelope?.envelopeId) await provider.remind(envelope.envelopeId);
  });
};

export default task;
