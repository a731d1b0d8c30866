import type { Task } from "graphile-worker";
import { idOf, numberOf } from "../jobs/payload.ts";

/** Reminds the signer {id}, who was asked for the {invitation}th time, where they have not signed since. Run twice: reminds once. */
const task: Task = async (payload, { query }) => {
  await query("select app_private.remind_signer_by_itself($1, $2, $3)", [
    idOf(payload),
    numberOf(payload, "invitation"),
    numberOf(payload, "round"),
  ]);
};

export default task;
