import type { Task } from "graphile-worker";
import { idOf } from "../jobs/payload.ts";

/** Sets the city of the project {id} if another transaction was adding that city when the project was saved. Idempotent. */
const task: Task = async (payload, { query }) => {
  await query("select app_private.place_project($1)", [idOf(payload)]);
};

export default task;
