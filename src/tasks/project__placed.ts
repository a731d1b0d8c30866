import type { Task } from "graphile-worker";
import { idOf } from "../jobs/payload.ts";

/**
 * Says which city the project {id} is in, where another transaction was adding that city when the project was saved. Run twice, it says
 * the same.
 */
const task: Task = async (payload, { query }) => {
  await query("select app_private.place_project($1)", [idOf(payload)]);
};

export default task;
