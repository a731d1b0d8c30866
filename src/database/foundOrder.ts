import type { ClientBase, DatabaseError } from "pg";

/** Something to run that may need others to have run before it. */
export interface Step {
  sql: string;
}

/** A step that did not succeed, and what PostgreSQL said. */
export interface FailedStep<S extends Step> {
  step: S;
  error: DatabaseError;
}

/** Runs one text in a savepoint, so that the transaction goes on after a failure. */
export async function attempt(client: ClientBase, sql: string): Promise<DatabaseError | undefined> {
  // On its own: a text that cannot be parsed is refused before any statement of it runs.
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
 * Runs steps in an order that is found: those that fail for want of others are tried again after these, as long as at least
 * one more succeeds each time. Groups are sent as one text; only one that fails is taken apart.
 * @param mayWait whether a failure may be over once others have run.
 * @param run runs one text, in a savepoint.
 * @returns those that are left, in the order given; the first one whose failure may not wait comes alone.
 */
export async function runInFoundOrder<S extends Step>(
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
