import type { JobHelpers, Task } from "graphile-worker";
import { transaction } from "../database/transaction.ts";
import { idOf } from "../jobs/payload.ts";
import { ProcessorRefusal } from "../providers/payments/index.ts";
import { writeErasureCertificate, type ErasureFacts } from "../pdf/writeCertificate.ts";
import { storeCertificate } from "../jobs/storeCertificate.ts";

/** Rows per transaction, which bounds how long others wait. */
const batch = 500;
/** Milliseconds after which the job yields and is queued again, so that other organizations get their turn. */
const turnMs = 20_000;

/**
 * Deletes the organization of the deletion {id} once it is final: closes its account at the payment processor, keeps what the law requires,
 * removes the rows in batches, queues the deletion of file contents, and writes the certificate. Idempotent: continues after an
 * interruption.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  const { query, withPgClient, abortSignal } = helpers;
  if (!(await closeAccount(helpers, id))) return;
  const { rows: begun } = await query<{ on: boolean }>("select app_private.begin_deletion($1) as on", [id]);
  if (!begun[0]!.on) return;
  await query("select app_private.retain_records($1)", [id]);
  const { rows } = await query<{ relation: string }>(
    "select relation from app_private.removed_relations() relation",
  );
  const end = performance.now() + turnMs;
  for (const { relation } of rows) {
    let amount: number;
    do {
      abortSignal.throwIfAborted();
      if (performance.now() > end) {
        await query("select app_private.queue_due_deletions()");
        return;
      }
      amount = await withPgClient((client) =>
        transaction(client, async () => {
          await client.query("set local statement_timeout = '30s'");
          const { rows: removed } = await client.query<{ amount: number }>(
            "select app_private.remove_organization_rows($1, $2, $3) as amount",
            [id, relation, batch],
          );
          return removed[0]!.amount;
        }),
      );
      // A call takes from one partition of a table; the last one finds nothing.
    } while (amount > 0);
  }
  await query("select app_private.empty_organization($1)", [id]);
  await certify(helpers, id);
};

/**
 * @returns whether the account at the payment processor is closed or does not exist; otherwise the deletion is postponed, and its owners
 * are notified.
 */
async function closeAccount({ query, payments }: JobHelpers, id: string): Promise<boolean> {
  const { rows } = await query<{ account: string | null }>(
    "select app_private.account_to_close($1) as account",
    [id],
  );
  const { account } = rows[0]!;
  if (account === null) return true;
  try {
    await payments.closeAccount(account);
    return true;
  } catch (error) {
    if (!(error instanceof ProcessorRefusal)) throw error;
    await query("select app_private.postpone_deletion($1, $2)", [id, error.message]);
    return false;
  }
}

async function certify({ query, fileStore }: JobHelpers, id: string): Promise<void> {
  const { rows } = await query<{ facts: ErasureFacts | null }>(
    "select app_private.deletion_certificate($1) as facts",
    [id],
  );
  const { facts } = rows[0]!;
  if (!facts) return;
  const checksum = await storeCertificate(fileStore, await writeErasureCertificate(facts), (...content) =>
    query<{ stored: boolean }>("select app_private.announce_deletion_certificate($1, $2) as stored", content),
  );
  await query("select app_private.complete_deletion($1, $2)", [id, checksum]);
}

export default task;
