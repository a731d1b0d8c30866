import type { Task } from "graphile-worker";
import { sweep } from "../jobs/sweep.ts";

/** Rows of the backlog per transaction, each of some hundreds of records: whoever searches meanwhile waits for one. */
const batch = 4;

/** Indexes the words of records that came many at a time. Run twice, it finds nothing. */
const task: Task = (_payload, helpers) => sweep(helpers, "app_private.catch_up_search($1)", batch);

export default task;
