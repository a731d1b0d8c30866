import type { Task } from "graphile-worker";
import { sweep } from "../jobs/sweep.ts";

/** Rows per transaction. */
const batch = 5_000;

/** Deletes what is kept for a while only: the tables of app_private.retention. Run twice, it finds nothing. */
const task: Task = async (_payload, helpers) => {
  const { rows } = await helpers.query<{ relation: string }>(
    "select relation from app_private.retained_relations() relation",
  );
  for (const { relation } of rows)
    await sweep(helpers, "app_private.sweep_retention($1, $2)", batch, [relation]);
};

export default task;
