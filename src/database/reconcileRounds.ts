/**
 * One round of making a database like its reference: what a failure would leave half done belongs to the caller's
 * transaction. Objects that depend on others are dropped and made again as often as it takes; each round reads anew.
 */
import type { ClientBase, DatabaseError } from "pg";
import type { CatalogObject } from "./catalog.ts";
import type { Difference } from "./differences.ts";
import { isTransient } from "./lockRetry.ts";
import { attempt, runInFoundOrder, type FailedStep, type Step } from "./foundOrder.ts";
import { rowsInUse } from "./rowsInUse.ts";

interface ObjectStep extends Step {
  difference: Difference;
}

/** What a step may wait for: an object or a row that a later step makes, or the end of what depends on it. */
const mayWait = ({ code = "" }: DatabaseError) =>
  ["42883", "42P01", "42704", "42703", "3F000", "23503", "2BP01"].includes(code);

/** The key that a row is to have is still another row's. */
const isTaken = ({ code = "" }: DatabaseError) => code === "23505";

/** A function or view that has other columns, arguments or results cannot be replaced; it has to be made anew. */
const mustBeRemade = ({ code = "" }: DatabaseError) => ["42P13", "42P16", "42809"].includes(code);

/**
 * Runs what the differences ask for, in an order that works.
 * @returns whether all of it could be done; the rest shows when the catalog is read again.
 */
export async function runRound(client: ClientBase, all: readonly Difference[]): Promise<boolean> {
  const of = (...kinds: CatalogObject["kind"][]) => all.filter(({ kind }) => kinds.includes(kind));
  const routines = of("function", "view");
  const guards = of("policy", "trigger");
  const words = of("grant", "comment");
  const rows = of("row");

  // Nobody can use a policy or trigger meanwhile, since its table is locked.
  await must(client, guards.filter(({ here }) => here).map(dropping));
  const unmade = await runInFoundOrder(
    client,
    inOneGroup(routines.filter(({ wanted }) => wanted).map(making)),
    // A view over a function whose result is to become another can fail by any code until that has been made anew.
    (error) => !isTransient(error),
  );
  const unlike = unmade.filter(({ error, step }) => mustBeRemade(error) && step.difference.here);
  const gone = routines.filter(({ wanted }) => !wanted).map(dropping);
  const held = await runInFoundOrder(client, inOneGroup(gone), mayWait);
  const removed = [...unlike.map(({ step }) => dropping(step.difference)), ...held.map(({ step }) => step)];
  for (const step of removed) await dropWithDependents(client, step);
  // What went with them shows in the next round.
  if (removed.length > 0) return false;
  // A function may have been in the way of another of its name.
  await must(
    client,
    unmade.map(({ step }) => step),
  );

  await must(client, guards.filter(({ wanted }) => wanted).map(making));
  const undeclared = rows.filter(({ wanted }) => !wanted);
  await refuseRowsInUse(client, undeclared);
  const unplaced = await runInFoundOrder(
    client,
    inOneGroup(rows.filter(({ wanted }) => wanted).map(making)),
    (error) => mayWait(error) || isTaken(error),
  );
  await must(client, undeclared.map(dropping));
  // Rows that change places with each other, such as two positions, all leave theirs first.
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
  // What is said of an object that was dropped above is gone with it.
  const undone = words.filter(({ wanted }) => !wanted).map(dropping);
  await runInFoundOrder(client, inOneGroup(undone), () => true);
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

/** Few enough to be sent at once, many enough for few round trips. */
const groupSize = 200;

function inOneGroup(steps: ObjectStep[]): ObjectStep[][] {
  return Array.from({ length: Math.ceil(steps.length / groupSize) }, (_, index) =>
    steps.slice(index * groupSize, (index + 1) * groupSize),
  );
}

async function must(client: ClientBase, steps: ObjectStep[]): Promise<void> {
  throwFirst(await runInFoundOrder(client, inOneGroup(steps), mayWait));
}

function throwFirst(failed: FailedStep<ObjectStep>[]): void {
  const [first] = failed;
  if (!first) return;
  if (isTransient(first.error)) throw first.error;
  const { identity, wanted } = first.step.difference;
  throw new Error(
    `The database could not ${wanted ? "be given" : "be rid of"} ${identity}: ${[first.error.message, first.error.detail].filter(Boolean).join(" ")}`,
    { cause: first.error },
  );
}

async function dropWithDependents(client: ClientBase, step: ObjectStep): Promise<void> {
  const error = await attempt(client, `${step.sql.slice(0, -1)} cascade;`);
  // It may have gone with another one.
  if (error && !["42883", "42P01"].includes(error.code ?? "")) throwFirst([{ step, error }]);
}
