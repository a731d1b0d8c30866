import type { Task } from "graphile-worker";

/** Closes the account {accountId} of a deleted organization at the processor. Refused while it has a balance; then retried for days. */
const task: Task = async (payload, { payments }) => {
  const { accountId } = (payload ?? {}) as { accountId?: unknown };
  if (typeof accountId !== "string") throw new Error("The job's payload has no accountId.");
  await payments.closeAccount(accountId);
};

export default task;
