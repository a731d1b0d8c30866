import type { Task } from "graphile-worker";
import { actionsOf } from "../payments/processorEvents.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

/** Removes a representative at the processor, and updates the account: {accountId, personId}. */
const task: Task = async (payload, helpers) => {
  const { accountId, personId } = (payload ?? {}) as { accountId?: unknown; personId?: unknown };
  if (typeof accountId !== "string" || typeof personId !== "string")
    throw new Error("The job's payload has no accountId and personId.");
  await helpers.payments.removePerson(accountId, personId);
  const { rows } = await helpers.query<{ account: DatabaseValue }>(
    "select app_private.account_to_sync($1) as account",
    [accountId],
  );
  if (rows[0]?.account) await actionsOf(helpers).refreshAccount(rows[0].account);
};

export default task;
