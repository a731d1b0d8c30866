import type { Task } from "graphile-worker";
import { idOf, numberOf } from "../jobs/payload.ts";

/** Reminds the signer {id} of the {invitation}th invitation if they have not signed since. Idempotent. */
const task: Task = async (payload, { query }) => {
  await query("select app_private.remind_signer_by_itself($1, $2, $3)", [
    idOf(payload),
    numberOf(payload, "invitation"),
    numberOf(payload, "round"),
  ]);
};

export default task;
