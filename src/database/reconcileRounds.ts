/**
 * One round of reconciling a database with its reference, in the caller's transaction. Objects on which others depend
 * are dropped and recreated repeatedly if necessary; each round reads the catalog again.
 */
import type { ClientBase, DatabaseError } from "pg";
import type { CatalogObject } from "./catalog.ts";
import type { Difference } from "./differences.ts";
import { isTransient } from "./lockRetry.ts";
import { attempt, runInDependencyOrder, type FailedStep, type Step } from "./dependencyOrder.ts";
import { rowsInUse } from "./rowsInUse.ts";

interface ObjectStep extends Step {
  difference: Difference;
}

/** Errors that later steps may resolve, by creating an object or row, or by removing a dependent object. */
const mayWait = ({ code = "" }: DatabaseError) =>
  ["42883", "42P01", "42704", "42703", "3F000", "23503", "2BP01"].includes(code);

/** Another row still has the key that a row is to have. */
const isTaken = ({ code = "" }: DatabaseError) => code === "23505";

/** A function or view whose columns, arguments or results change cannot be replaced; it must be recreated. */
const mustBeRemade = ({ code = "" }: DatabaseError) => ["42P13", "42P16", "42809"].includes(code);

/**
 * Applies the differences in an order that works.
 * @returns whether all of them could be applied; the rest is found when the catalog is read again.
 */
export async function runRound(client: ClientBase, all: readonly Difference[]): Promise<boolean> {
  const of = (...kinds: CatalogObject["kind"][]) => all.filter(({ kind }) => kinds.includes(kind));
  const routines = of("function", "view");
  const guards = of("policy", "trigger");
  const words = of("grant", "comment");
  const settings = of("column setting");
  const rows = of("row");

  // Nobody can use a policy or trigger meanwhile, since its table is locked.
  await must(client, guards.filter(({ here }) => here).map(dropping));
  const unmade = await runInDependencyOrder(
    client,
    inOneGroup(routines.filter(({ wanted }) => wanted).map(making)),
    // A view over a function whose result type changes can fail with any code until the function has been recreated.
    (error) => !isTransient(error),
  );
  const unlike = unmade.filter(({ error, step }) => mustBeRemade(error) && step.difference.here);
  const gone = routines.filter(({ wanted }) => !wanted).map(dropping);
  const held = await runInDependencyOrder(client, inOneGroup(gone), mayWait);
  const removed = [...unlike.map(({ step }) => dropping(step.difference)), ...held.map(({ step }) => step)];
  for (const step of removed) await dropWithDependents(client, step);
  // Dependents dropped with them are found in the next round.
  if (removed.length > 0) return false;
  // A function may have conflicted with another one of its name.
  await must(
    client,
    unmade.map(({ step }) => step),
  );

  await must(client, guards.filter(({ wanted }) => wanted).map(making));
  await must(client, settings.filter(({ wanted }) => !wanted).map(dropping));
  await must(client, settings.filter(({ wanted }) => wanted).map(making));
  const undeclared = rows.filter(({ wanted }) => !wanted);
  await refuseRowsInUse(client, undeclared);
  const unplaced = await runInDependencyOrder(
    client,
    inOneGroup(rows.filter(({ wanted }) => wanted).map(making)),
    (error) => mayWait(error) || isTaken(error),
  );
  await must(client, undeclared.map(dropping));
  // Rows that swap values, such as two positions, are all deleted first.
  const swapped = unplaced.filter(({ error, step }) => isTaken(error) && step.difference.here);
  await refuseRowsInUse(
    client,
    swapped.map(({ step }) => step.difference),
  );
  await must(
    client,
    swapped.map(({ step }) => dropping(step.difference)),
  );
  await must(
    client,
    unplaced.map(({ step }) => step),
  );
  // Comments and grants on an object that was dropped above are gone with it.
  const undone = words.filter(({ wanted }) => !wanted).map(dropping);
  await runInDependencyOrder(client, inOneGroup(undone), () => true);
  await must(client, words.filter(({ wanted }) => wanted).map(making));
  return true;
}

async function refuseRowsInUse(client: ClientBase, differences: readonly Difference[]): Promise<void> {
  const sentence = await rowsInUse(client, differences);
  if (sentence) throw new Error(sentence);
}

function making(difference: Difference): ObjectStep {
  return { sql: `${difference.wanted!.create};`, difference };
}

function dropping(difference: Difference): ObjectStep {
  return { sql: `${difference.here!.drop};`, difference };
}

/** Small enough to be sent at once, large enough for few round trips. */
const groupSize = 200;

function inOneGroup(steps: ObjectStep[]): ObjectStep[][] {
  return Array.from({ length: Math.ceil(steps.length / groupSize) }, (_, index) =>
    steps.slice(index * groupSize, (index + 1) * groupSize),
  );
}

async function must(client: ClientBase, steps: ObjectStep[]): Promise<void> {
  throwFirst(await runInDependencyOrder(client, inOneGroup(steps), mayWait));
}

function throwFirst(failed: FailedStep<ObjectStep>[]): void {
  const [first] = failed;
  if (!first) return;
  if (isTransient(first.error)) throw first.error;
  const { identity, wanted } = first.step.difference;
  throw new Error(
    `The database could not ${wanted ? "create" : "drop"} ${identity}: ${[first.error.message, first.error.detail].filter(Boolean).join(" ")}`,
    { cause: first.error },
  );
}

async function dropWithDependents(client: ClientBase, step: ObjectStep): Promise<void> {
  const error = await attempt(client, `${step.sql.slice(0, -1)} cascade;`);
  // It may have been dropped with another one.
  if (error && !["42883", "42P01"].includes(error.code ?? "")) throwFirst([{ step, error }]);
}
