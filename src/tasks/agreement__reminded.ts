import type { Task } from "graphile-worker";
import { idOf } from "../jobs/payload.ts";
import { callProvider } from "../signing/callProvider.ts";

/**
 * Asks the provider of the agreement {id} to remind the signers whose turn it is. Not idempotent: another run may
 * remind them again.
 */
const task: Task = async (payload, helpers) => {
  await callProvider(helpers, idOf(payload), async ({ provider, envelope }) => {
    if (envelope?.envelopeId) await provider.remind(envelope.envelopeId);
  });
};

export default task;
