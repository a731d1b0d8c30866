import type { Task } from "graphile-worker";
import { idOf } from "../jobs/payload.ts";
import { atProvider } from "../signing/atProvider.ts";

/** Has the provider of the agreement {id} ask those once more whose turn it is. Run twice: they may be asked twice. */
const task: Task = async (payload, helpers) => {
  await atProvider(helpers, idOf(payload), async ({ provider, envelope }) => {
    if (envelope?.envelopeId) await provider.remind(envelope.envelopeId);
  });
};

export default task;
