import type { Task } from "graphile-worker";
import { SealFault } from "../secrets/seal.ts";

/** Texts per statement. */
const batch = 1_000;

/**
 * Reseals texts that a former key or an earlier version sealed, with the current key and bound to their row: the
 * columns of app_private.sealed_columns. Idempotent. Texts that cannot be opened remain unchanged, with the reason in
 * the log. A day after a column has no unbound texts left, newly started processes no longer accept them.
 */
const task: Task = async (_payload, { query, seal, logger, abortSignal }) => {
  const { rows: places } = await query<{ relation: string; name: string }>(
    "select relation, name from app_private.sealed_places()",
  );
  for (const { relation, name } of places) {
    const column = `${relation}.${name}`;
    let after: string | null = null;
    let sealed = 0;
    const faults = new Map<string, number>();
    for (let more = true; more && !abortSignal.aborted;) {
      const { rows }: { rows: { id: string; sealed: string }[] } = await query(
        "select * from app_private.sealed_otherwise($1, $2, $3, $4, $5)",
        [relation, name, seal.mark, after, batch],
      );
      const texts = rows.flatMap(({ id, sealed: former }) => {
        try {
          const kept = { column, row: id };
          return [{ id, former, sealed: seal.seal(seal.open(former, kept), kept) }];
        } catch (error) {
          if (!(error instanceof SealFault)) throw error;
          faults.set(error.message, (faults.get(error.message) ?? 0) + 1);
          return [];
        }
      });
      if (texts.length > 0)
        sealed += (
          await query<{ amount: number }>("select app_private.seal_anew($1, $2, $3) as amount", [
            relation,
            name,
            JSON.stringify(texts),
          ])
        ).rows[0]!.amount;
      after = rows.at(-1)?.id ?? null;
      more = rows.length === batch;
    }
    if (sealed > 0)
      logger.info(
        `${sealed} secrets of ${column} were sealed with the current key of SECRET_KEYS, bound to their rows.`,
        { event: "secret.sealed" },
      );
    for (const [message, amount] of faults)
      logger.warn(`${amount} secrets of ${column} cannot be opened: ${message}`, {
        event: "secret.unreadable",
      });
    const { rows: left } = await query<{ amount: number }>(
      "select app_private.note_bound($1, $2) as amount",
      [relation, name],
    );
    if (left[0]!.amount > 0)
      logger.warn(
        `${left[0]!.amount} secrets of ${column} are not bound to a row yet; see UNBOUND_SECRETS.`,
        {
          event: "secret.unbound",
        },
      );
  }
};

export default task;
