import type { Task } from "graphile-worker";
import { sweep } from "../jobs/sweep.ts";

/** Rows per transaction. */
const batch = 5_000;

/** Deletes expired rows of the tables in app_private.retention. Idempotent. */
const task: Task = async (_payload, helpers) => {
  const { rows } = await helpers.query<{ relation: string }>(
    "select relation from app_private.retained_relations() relation",
  );
  for (const { relation } of rows)
    await sweep(helpers, "app_private.sweep_retention($1, $2)", batch, [relation]);
};

export default task;
