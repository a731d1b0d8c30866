import type { Task } from "graphile-worker";
import { idOf } from "../jobs/payload.ts";

/** Removes the card {id} at the processor too. */
const task: Task = async (payload, { query, payments }) => {
  const { rows } = await query<{ card: string | null }>("select app_private.removed_card($1) as card", [
    idOf(payload),
  ]);
  const { card } = rows[0]!;
  if (card !== null) await payments.removeCard(card);
};

export default task;
