import type { Task } from "graphile-worker";
import { idOf } from "../jobs/payload.ts";
import { atProvider } from "../signing/atProvider.ts";

/** Asks the provider how far the agreement {id} is, and has it follow. Run twice: what has followed already stays. */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  await atProvider(helpers, id, async ({ provider, envelope }) => {
    if (!envelope?.envelopeId) return;
    const state = await provider.state(envelope.envelopeId);
    await helpers.query("select app_private.follow_envelope($1, $2)", [id, JSON.stringify(state)]);
  });
};

export default task;
