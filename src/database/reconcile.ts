/** Brings the replaceable objects of a database to those of its reference, and reports structural differences. */
import type { Client } from "pg";
import { readCatalog, type CatalogObject } from "./catalog.ts";
import { differences, driftSentence, isStructure, type Difference } from "./differences.ts";
import { isTransient, lockAttempts, lockTimeoutMs as usualLockTimeoutMs, pauseAfter } from "./lockRetry.ts";
import { LockTimeout, lockTables } from "./lockTables.ts";
import type { MigrationLog } from "./migrationLog.ts";
import { readRows } from "./catalogRows.ts";
import { runRound } from "./reconcileRounds.ts";

export interface ReconcileOptions {
  /** Tables whose rows are declared; see applyObjects. */
  declaredTables: readonly string[];
  log?: MigrationLog | undefined;
  /** Further work for the same transaction. */
  alongside?: (client: Client) => Promise<unknown>;
  /** Catalog of the database without rows, if it has just been read. */
  here?: Promise<CatalogObject[]>;
  /** Whether it is re-read until nothing differs; if not, the caller must verify soon. */
  verify?: boolean;
  /** Timeout for a lock in milliseconds, and maximum number of attempts. */
  lockTimeoutMs?: number;
  attempts?: number;
}

export interface Reconciled {
  /** Created, replaced and dropped objects. */
  changes: Difference[];
  /** Structural differences, which are left unchanged. */
  drift: Difference[];
}

const mostRounds = 8;

/**
 * Compares a database with its reference, and creates, replaces or drops what differs of functions, views, policies,
 * triggers, grants, comments and declared rows, in one transaction. Tables that do not change are not locked; a lock is
 * waited for briefly, so that others do not queue behind, and then again after a pause.
 * @param target the owner's connection, outside of a transaction.
 * @param reference the catalog that the files of the schema make, with the rows of the declared tables.
 * @throws Error with a sentence when a lock cannot be had, or something depends on what has to go.
 */
export async function reconcile(
  target: Client,
  reference: readonly CatalogObject[],
  {
    declaredTables,
    log,
    alongside,
    here,
    verify = true,
    lockTimeoutMs = usualLockTimeoutMs,
    attempts = lockAttempts,
  }: ReconcileOptions,
): Promise<Reconciled> {
  let drift: Difference[] = [];
  for (let tries = 1; ; tries++) {
    await target.query("begin");
    try {
      await target.query(`set local check_function_bodies = off; set local client_min_messages = warning;
        set local lock_timeout = ${lockTimeoutMs}`);
      const done = await bringTogether(target, reference, declaredTables, {
        found: (found) => (drift = found),
        unknown: (names) => tellUnknown(names, log),
        here: tries === 1 ? here : undefined,
        verify,
      });
      await alongside?.(target);
      await target.query("commit");
      reportDifferences(verify ? done : { ...done, drift: [] }, log);
      return done;
    } catch (error) {
      await target.query("rollback");
      if (!isTransient(error)) {
        // An object that cannot be created may be missing a column that somebody dropped.
        reportDifferences({ changes: [], drift }, log);
        throw error;
      }
      const reason = error instanceof LockTimeout ? await error.describe(target) : (error as Error).message;
      if (tries === attempts)
        throw new Error(
          `The schema could not be changed in ${attempts} attempts, since ${reason} End what holds the lock, or start again at a quieter time; nothing was changed.`,
          { cause: error },
        );
      await pauseAfter(tries, (pause) =>
        log?.warn(
          { event: "schema.lock_timeout", attempt: tries },
          `The schema was not changed, since ${reason} Retrying in ${pause} ms.`,
        ),
      );
    }
  }
}

async function bringTogether(
  target: Client,
  reference: readonly CatalogObject[],
  declaredTables: readonly string[],
  options: {
    found(drift: Difference[]): void;
    unknown(names: string[]): void;
    here: Promise<CatalogObject[]> | undefined;
    verify: boolean;
  },
): Promise<Reconciled> {
  const changes = new Map<string, Difference>();
  let structure: CatalogObject[] | undefined;
  let before = "";
  for (let round = 1; ; round++) {
    const rowsOf = await existing(target, declaredTables);
    const here =
      round === 1 && options.here
        ? [...(await options.here), ...(await readRows(target, rowsOf))]
        : await readCatalog(target, { rowsOf, unknown: (names) => round === 1 && options.unknown(names) });
    const all = differences(here, reference);
    const replaceable = all.filter((difference) => !isStructure(difference));
    requireKept((structure ??= here.filter(isStructure)), here);
    if (round === 1) {
      options.found(all.filter(isStructure));
      await lockTables(target, replaceable);
    }
    // Objects that still differ after they were created, such as a row that a trigger changes, are reported and left.
    const left = JSON.stringify(replaceable);
    if (left === before || round > mostRounds || replaceable.length === 0)
      return { changes: [...changes.values()], drift: all };
    before = left;
    for (const difference of replaceable)
      if (!changes.has(difference.identity)) changes.set(difference.identity, difference);
    const isDone = await runRound(target, replaceable);
    if (isDone && !options.verify) return { changes: [...changes.values()], drift: all.filter(isStructure) };
  }
}

/** A declared table that a migration has yet to create is drift, not a failure. */
async function existing(target: Client, tables: readonly string[]): Promise<string[]> {
  const { rows } = await target.query<{ name: string }>(
    "select name from unnest($1::text[]) as name where to_regclass(name) is not null",
    [tables],
  );
  return rows.map(({ name }) => name);
}

/** Dropping with dependents must not have removed structure. */
function requireKept(before: readonly CatalogObject[], now: readonly CatalogObject[]): void {
  const kept = new Set(now.map(({ identity }) => identity));
  const lost = before.find(({ identity }) => !kept.has(identity));
  if (lost)
    throw new Error(
      `The ${lost.identity} depends on a function or view that must be recreated or dropped: a migration has to change the ${lost.kind} first.`,
    );
}

/** Objects that no migration can have created, since its reader would have refused them. */
function tellUnknown(names: string[], log: MigrationLog | undefined): void {
  for (const name of names)
    log?.warn({ event: "schema.drift", object: name }, `No migration creates ${name}; it is left unchanged.`);
}

const mostSentences = 20;

/** Reports the changes and the structural differences. */
export function reportDifferences({ changes, drift }: Reconciled, log: MigrationLog | undefined): void {
  for (const kind of new Set(changes.map((change) => change.kind))) {
    const of = changes.filter((change) => change.kind === kind);
    const created = of.filter(({ here }) => !here).length;
    const dropped = of.filter(({ wanted }) => !wanted).length;
    const replaced = of.length - created - dropped;
    log?.info(
      { event: "schema.reconciled", kind, created, replaced, dropped },
      `Schema, ${kind}: ${created} created, ${replaced} replaced, ${dropped} dropped.`,
    );
  }
  for (const difference of drift.slice(0, mostSentences))
    log?.warn({ event: "schema.drift", object: difference.identity }, driftSentence(difference));
  if (drift.length > mostSentences)
    log?.warn(
      { event: "schema.drift" },
      `There are ${drift.length - mostSentences} more structural differences.`,
    );
}
