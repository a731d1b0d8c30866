import type { Task } from "graphile-worker";
import { idOf } from "../jobs/payload.ts";
import { callProvider } from "../signing/callProvider.ts";

/** Updates the agreement {id} from its provider. Idempotent: completed changes remain. */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  await callProvider(helpers, id, async ({ provider, envelope }) => {
    if (!envelope?.envelopeId) return;
    const state = await provider.state(envelope.envelopeId);
    await helpers.query("select app_private.follow_envelope($1, $2)", [id, JSON.stringify(state)]);
  });
};

export default task;
