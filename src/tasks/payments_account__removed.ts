import type { Task } from "graphile-worker";

/** Closes the account {accountId} at the processor, whose organization was deleted. Refused while money is on it; then it is tried again for days. */
const task: Task = async (payload, { payments }) => {
  const { accountId } = (payload ?? {}) as { accountId?: unknown };
  if (typeof accountId !== "string") throw new Error("The job's payload has no accountId.");
  await payments.closeAccount(accountId);
};

export default task;
