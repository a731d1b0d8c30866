import type { Task } from "graphile-worker";

/** Texts per statement. */
const batch = 1_000;

/**
 * Seals with the present key what a former one sealed: the columns of app_private.sealed_columns. Run twice, it finds nothing. What
 * cannot be opened stays as it is, and the log says which keys are missing.
 */
const task: Task = async (_payload, { query, seal, logger, abortSignal }) => {
  const { rows: places } = await query<{ relation: string; name: string }>(
    "select relation, name from app_private.sealed_places()",
  );
  for (const { relation, name } of places) {
    let after: string | null = null;
    let sealed = 0;
    const missing = new Map<string, number>();
    for (let more = true; more && !abortSignal.aborted;) {
      const { rows }: { rows: { id: string; sealed: string }[] } = await query(
        "select * from app_private.sealed_otherwise($1, $2, $3, $4, $5)",
        [relation, name, seal.kid, after, batch],
      );
      const texts = rows.flatMap(({ id, sealed: former }) => {
        try {
          return [{ id, former, sealed: seal.seal(seal.open(former)) }];
        } catch {
          const kid = former.slice(0, former.lastIndexOf("."));
          missing.set(kid, (missing.get(kid) ?? 0) + 1);
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
      logger.info(`${sealed} secrets of ${relation}.${name} are sealed with the key ${seal.kid} now.`);
    for (const [kid, amount] of missing)
      logger.warn(
        `${amount} secrets of ${relation}.${name} cannot be opened: the key ${kid} of SECRET_KEYS is missing or changed.`,
      );
  }
};

export default task;
