import type { ClientBase, DatabaseError } from "pg";

/** A step that may depend on other steps. */
export interface Step {
  sql: string;
}

/** A step that failed, with PostgreSQL's error. */
export interface FailedStep<S extends Step> {
  step: S;
  error: DatabaseError;
}

/** Runs one text in a savepoint, so that the transaction continues after a failure. */
export async function attempt(client: ClientBase, sql: string): Promise<DatabaseError | undefined> {
  // Sent on its own: a text with a syntax error is refused before any of its statements runs.
  await client.query("savepoint step");
  try {
    await client.query(sql);
    await client.query("release savepoint step");
    return undefined;
  } catch (error) {
    if (!(error as DatabaseError).code) throw error;
    await client.query("rollback to savepoint step; release savepoint step");
    return error as DatabaseError;
  }
}

/**
 * Runs steps in an order found by trial: steps that fail because of a missing dependency are retried after the
 * others, as long as at least one more succeeds each time. Groups are sent as one text; only a group that fails is
 * split.
 * @param mayWait whether the failure may go away once others have run.
 * @param run runs one text, in a savepoint.
 * @returns the remaining failures, in the given order; the first failure that cannot wait is returned alone.
 */
export async function runInDependencyOrder<S extends Step>(
  client: ClientBase,
  groups: readonly (readonly S[])[],
  mayWait: (error: DatabaseError) => boolean,
  run: typeof attempt = attempt,
): Promise<FailedStep<S>[]> {
  const failed: FailedStep<S>[] = [];
  for (const group of groups) {
    if (group.length > 1 && !(await run(client, group.map(({ sql }) => sql).join("\n")))) continue;
    const stuck = await runOnce(client, group, mayWait, failed, run);
    if (stuck) return [stuck];
  }
  for (let left = failed; left.length > 0;) {
    const again: FailedStep<S>[] = [];
    const stuck = await runOnce(
      client,
      left.map(({ step }) => step),
      mayWait,
      again,
      run,
    );
    if (stuck) return [stuck];
    if (again.length === left.length) return again;
    left = again;
  }
  return [];
}

async function runOnce<S extends Step>(
  client: ClientBase,
  steps: readonly S[],
  mayWait: (error: DatabaseError) => boolean,
  failed: FailedStep<S>[],
  run: typeof attempt,
): Promise<FailedStep<S> | undefined> {
  for (const step of steps) {
    const error = await run(client, step.sql);
    if (!error) continue;
    if (!mayWait(error)) return { step, error };
    failed.push({ step, error });
  }
  return undefined;
}
