import type { Task } from "graphile-worker";
import { idOf } from "../jobs/payload.ts";

/** Removes the card {id} at the processor too. */
const task: Task = async (payload, { query, payments }) => {
  const { rows } = await query<{ processor_id: string }>(
    "select processor_id from app_public.processor_cards where id = $1 and removed_at is not null",
    [idOf(payload)],
  );
  if (rows[0]) await payments.removeCard(rows[0].processor_id);
};

export default task;
