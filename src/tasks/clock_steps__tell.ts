import type { Task } from "graphile-worker";
import { sweep } from "../jobs/sweep.ts";

/** Events per transaction. */
const batch = 1_000;

/** Writes events that are caused by the passage of time: a promotion ended, a deposit is due. Idempotent. */
const task: Task = async (_payload, helpers) => {
  const { rows } = await helpers.query<{ subject: string; name: string }>(
    "select subject, name from app_private.clock_step_names()",
  );
  for (const { subject, name } of rows)
    await sweep(helpers, "app_private.tell_clock_step($1, $2, $3)", batch, [subject, name]);
};

export default task;
