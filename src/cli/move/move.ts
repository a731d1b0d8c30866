/**
 * Moves an organization to another installation, in one transaction there:
 * 1. All rows, and the contents of its files, are copied while the organization works.
 * 2. It is paused. Changes are refused as UNAVAILABLE: first those of its members, then those of the engines, once
 * they have finished their current work for it.
 * 3. Changes since the first copy are copied, until both sides are equal.
 * 4. The other installation commits. This one archives the organization and records its new location.
 * Nothing is visible there before the commit, and if the command ends before, the organization remains here. If it
 * ends between both commits, the status is SWITCHING: the next run checks whether the other installation has the
 * organization.
 */
import { setTimeout as pause } from "node:timers/promises";
import { escapeIdentifier, type Client, type ClientBase } from "pg";
import type { FileStore } from "../../providers/files/index.ts";
import type { Seal } from "../../secrets/seal.ts";
import { contentsOf, copyContents, registerContents } from "./movedFiles.ts";
import { differingTables, TableCopy, textSettings, type Changes } from "./movedRows.ts";
import {
  crossingReferences,
  danglingReferences,
  quoted,
  readMovedTables,
  type Moved,
  type MovedTable,
  type MovedTables,
} from "./movedTables.ts";
import { matchUsers, noChanges } from "./movedUsers.ts";

/** One of the two installations. */
export interface Installation {
  store: FileStore;
  seal: Seal;
}

export interface Source extends Installation {
  /** Holds the lock that shows others that the command is running. */
  control: Client;
  /** Reads, and locks rows. */
  client: Client;
}

export interface Target extends Installation {
  client: Client;
  /** BASE_URL of the installation. */
  url: string;
}

const LOCK = 7_528_006;
/** Held while work in progress may still write during the pause. */
const DRAIN_LOCK = 7_528_007;
/** Timeout in seconds for work in progress for the organization. */
const DRAIN_S = 60;
const POLL_MS = 100;
/** Leases that may last for minutes, until computations return, and are checked when the result is stored. */
const revocable = ["app_private.workflow_runs", "app_private.workflow_streams"];
/** Maximum number of rows and jobs that an error names. */
const MOST_NAMED = 5;
/** Maximum number of rounds that copy differences; the last one finds none. */
const ROUNDS = 10;
/** Number of rows that are copied within a moment. */
const FEW_ROWS = 200;

export interface MoveFacts {
  rows: number;
  tables: number;
  /** Accounts that were copied, and accounts that existed there. */
  accounts: number;
  known: number;
  contents: number;
  /** Checksums of contents that the store lacks. */
  missing: string[];
  jobs: number;
}

export interface MoveReport extends MoveFacts {
  /** Rows that were copied again during the pause. */
  changed: number;
  /** Milliseconds during which changes were refused. */
  pausedMs: number;
}

type Tell = (step: string) => void;

export class Move {
  readonly #source: Source;
  readonly #target: Target;
  readonly #tell: Tell;
  readonly #organizationId: string;
  #tables!: MovedTables;
  #changes: Changes;
  #isPaused = false;

  constructor(source: Source, target: Target, organizationId: string, tell: Tell) {
    this.#source = source;
    this.#target = target;
    this.#organizationId = organizationId;
    this.#tell = tell;
    this.#changes = noChanges(organizationId);
  }

  /**
   * Finds obstacles to a move, and completes one that was interrupted between the two commits.
   * @returns true if nothing else was left to do
   * @throws Error with a sentence for the operator
   */
  async prepare(): Promise<boolean> {
    const { control, client } = this.#source;
    const target = this.#target.client;
    for (const each of [control, client, target]) await each.query(textSettings);
    await target.query("set session_replication_role = replica").catch(() => {
      throw new Error(
        "The login of the other installation must be a superuser, or be granted `set on parameter session_replication_role`.",
      );
    });
    const { rows } = await control.query<{ locked: boolean }>(
      `select pg_try_advisory_lock(${LOCK}, app_private.move_lock($1)) as locked`,
      [this.#organizationId],
    );
    if (!rows[0]!.locked) throw new Error("Another command is moving this organization.");
    await this.#requireTwo();
    const isThere = await this.#has(target);
    if (await this.#isSwitching()) {
      if (isThere) {
        await this.#putAside();
        return true;
      }
    } else if (isThere) throw new Error("The other installation already has this organization.");
    await control.query("select app_private.give_up_move($1)", [this.#organizationId]);
    this.#tables = await readMovedTables(client);
    if ((await readMovedTables(target)).shape !== this.#tables.shape)
      throw new Error(
        "The tables of both installations differ: run the same version of the service on both.",
      );
    await this.#refuseShared();
    return false;
  }

  async #requireTwo(): Promise<void> {
    const of = async (client: ClientBase) =>
      (
        await client.query<{ name: string }>(
          // Not the system identifier, because a copied data folder has the same.
          "select concat_ws(' ', pg_catalog.pg_postmaster_start_time(), current_setting('port'), current_database()) as name",
        )
      ).rows[0]!.name;
    if ((await of(this.#source.client)) === (await of(this.#target.client)))
      throw new Error("Both settings name the same database.");
  }

  async #has(client: ClientBase): Promise<boolean> {
    const { rowCount } = await client.query("select from app_public.organizations where id = $1", [
      this.#organizationId,
    ]);
    return rowCount === 1;
  }

  async #isSwitching(): Promise<boolean> {
    const { rowCount } = await this.#source.control.query(
      "select from app_private.organization_moves where organization_id = $1 and status = 'SWITCHING'",
      [this.#organizationId],
    );
    return rowCount === 1;
  }

  async #refuseShared(): Promise<void> {
    const { client } = this.#source;
    const crossing = await crossingReferences(client, this.#tables, this.#moved);
    if (crossing.length > 0)
      throw new Error(
        `Rows of this organization and of others refer to each other. Organizations that sell together must be on one installation:\n  ${crossing.join("\n  ")}`,
      );
    const { rows: slugs } = await client.query<{ table_name: string; slug: string; record_id: string }>(
      `select t.table_name, t.slug::text, t.record_id from app_private.slugs t where t.table_name <> 'users'
         and ${this.#table("app_private.slugs").condition("t", this.#moved)}`,
    );
    const { rows: taken } = await this.#target.client.query<{ slug: string }>(
      `select s.table_name || ' ' || s.slug as slug from app_private.slugs s
       join unnest($1::text[], $2::text[], $3::uuid[]) o (table_name, slug, id)
         on o.table_name = s.table_name and o.slug = s.slug::text and o.id <> s.record_id`,
      [slugs.map((one) => one.table_name), slugs.map(({ slug }) => slug), slugs.map((one) => one.record_id)],
    );
    if (taken.length > 0)
      throw new Error(
        `The other installation already has these slugs: ${taken.map(({ slug }) => slug).join(", ")}. Change them first.`,
      );
  }

  get #moved(): Moved {
    return this.#changes;
  }

  #table(name: string): MovedTable {
    return this.#tables.tables.find((table) => table.name === name)!;
  }

  /** The numbers of rows and files to be moved. */
  async facts(): Promise<MoveFacts> {
    const { client } = this.#source;
    this.#changes = await matchUsers(client, this.#target.client, this.#tables, this.#changes);
    let rows = 0;
    let tables = 0;
    for (const table of this.#tables.tables) {
      const found = await client.query<{ count: number }>(
        `select count(*)::int as count from ${quoted(table.name)} t where ${table.condition("t", this.#moved)}`,
      );
      rows += found.rows[0]!.count;
      tables += found.rows[0]!.count > 0 ? 1 : 0;
    }
    const contents = await contentsOf(client, this.#tables, this.#moved);
    const jobs = await client.query(
      "select from graphile_worker._private_jobs j where j.payload #>> '{context,organizationId}' = $1",
      [this.#organizationId],
    );
    return {
      rows,
      tables,
      accounts: this.#changes.userIds.length,
      known: this.#changes.users.size,
      contents: contents.length,
      missing: [],
      jobs: jobs.rowCount!,
    };
  }

  async run(): Promise<MoveReport> {
    const { control, client } = this.#source;
    const target = this.#target.client;
    const facts = await this.facts();
    await target.query("begin");
    // At the former installation, the directory keeps its slugs.
    await target.query("delete from app_private.slugs where record_id = $1", [this.#organizationId]);
    try {
      await this.#copyAll(facts.rows);
      await this.#copyContents();
      await this.#follow();
      await this.#requireReferences(this.#tables.tables);
      await client.query("begin");
      const jobs = await this.#pause();
      const pausedAt = performance.now();
      this.#isPaused = true;
      const changed = await this.#catchUp();
      const missing = await this.#copyContents();
      await this.#finishTarget(jobs);
      await control.query(
        "update app_private.organization_moves set status = 'SWITCHING' where organization_id = $1",
        [this.#organizationId],
      );
      await client.query("select app_private.put_aside_organization($1)", [this.#organizationId]);
      await client.query("set constraints all immediate");
      await target.query("commit");
      await client.query("commit");
      const pausedMs = performance.now() - pausedAt;
      await this.#end();
      return { ...facts, missing, jobs: jobs.length, changed, pausedMs };
    } catch (error) {
      await this.#giveUp();
      throw error;
    }
  }

  /** Ends the pause, unless the other installation may have committed. */
  async #giveUp(): Promise<void> {
    const { control, client } = this.#source;
    const back = async (one: Client) => one.query("rollback").then(Boolean, () => false);
    const isUndone = await back(this.#target.client);
    await back(client);
    if (!isUndone || (await this.#has(this.#target.client)))
      throw new Error(
        "It is not known whether the other installation has the organization. Changes are refused until you run the command again.",
      );
    await control.query("select app_private.give_up_move($1)", [this.#organizationId]);
  }

  async #copyAll(rows: number): Promise<void> {
    const { client } = this.#source;
    await client.query("begin isolation level repeatable read read only");
    let copied = 0;
    for (const table of this.#tables.tables)
      for await (const count of this.#copyOf(table).all()) {
        copied += count;
        this.#tell(`Copied ${Math.min(10, Math.floor((10 * copied) / rows)) * 10} % of ${rows} rows`);
      }
    await client.query("commit");
    // Comparisons join these tables, for which the planner has no statistics yet.
    const names = this.#tables.tables.map(({ name }) => quoted(name));
    await this.#target.client.query(`analyze ${[...new Set(names)].join(", ")}`);
  }

  /** Copies changes made during the first copy, so that few remain for the pause. */
  async #follow(): Promise<void> {
    const { client } = this.#source;
    for (let round = 1, before = Infinity; round <= ROUNDS; round += 1) {
      this.#tell(`Following changes, round ${round}`);
      // In one snapshot, so that no row refers to one that only a later statement finds.
      await client.query("begin isolation level repeatable read read only");
      const changed = await this.#copyDifferences();
      await client.query("commit");
      // Further rounds would not reduce the number.
      if (changed < FEW_ROWS || changed > before / 2) return;
      before = changed;
    }
  }

  /** Rows that the other installation has under ids of its own. */
  async #requireReferences(tables: readonly MovedTable[]): Promise<void> {
    await this.#copyCities();
    const target = this.#target.client;
    const dangling = await danglingReferences(target, tables, this.#tables, this.#moved);
    if (dangling.length > 0)
      throw new Error(`Rows refer to rows that the other installation lacks:\n  ${dangling.join("\n  ")}`);
  }

  #copyOf(table: MovedTable): TableCopy {
    return new TableCopy(this.#source.client, this.#target.client, table, this.#changes);
  }

  async #copyContents(): Promise<string[]> {
    const { client, store } = this.#source;
    this.#tell("Copying files");
    const contents = await contentsOf(client, this.#tables, this.#moved);
    const { missing } = await copyContents(contents, store, this.#target.store);
    await registerContents(client, this.#target.client, contents, this.#organizationId);
    return missing;
  }

  /**
   * Pauses the organization: first its members, so that no new work is created, then the engines, once their current
   * work has ended.
   * @returns jobs of the organization, which were removed here
   */
  async #pause(): Promise<Job[]> {
    const { control, client } = this.#source;
    this.#tell("Waiting for work in progress");
    const tables = this.#tables.tables.filter(({ isAccount }) => !isAccount);
    const held = tables.filter(({ isHeld }) => isHeld);
    await this.#finishLongWork(held.filter(({ name }) => !revocable.includes(name)));
    const jobs: Job[] = [];
    const lock = `${DRAIN_LOCK}, app_private.move_lock($1)`;
    await control.query(`select pg_advisory_lock(${lock})`, [this.#organizationId]);
    await control.query("select app_private.pause_for_move($1, $2)", [
      this.#organizationId,
      this.#target.url,
    ]);
    for (const until = performance.now() + DRAIN_S * 1_000; ;) {
      await this.#drain(held, jobs, until);
      await control.query(`select pg_advisory_unlock(${lock})`, [this.#organizationId]);
      // Waits for transactions that are about to commit.
      await control.query("select from app_private.event_counters c where c.stream_id = $1 for update", [
        this.#organizationId,
      ]);
      const taken = jobs.length;
      await client.query("savepoint of_hold");
      await this.#hold(tables.filter(({ isHeld, isCounted }) => isHeld || !isCounted));
      await this.#takeJobs(jobs);
      if ((await this.#inProgress(held)).length === 0) return jobs;
      // Work was begun in between. Its result must be stored, otherwise it would be repeated.
      await client.query("rollback to savepoint of_hold");
      jobs.splice(taken);
      await control.query(`select pg_advisory_lock(${lock})`, [this.#organizationId]);
    }
  }

  /**
   * Revokes leases that are checked when the result is stored: the other installation restarts from the same events.
   */
  async #revokeClaims(tables: readonly MovedTable[]): Promise<void> {
    for (const { name, key, condition } of tables.filter((table) => revocable.includes(table.name))) {
      const columns = (alias: string) =>
        key.map((column) => `${alias}.${escapeIdentifier(column.name)}`).join(", ");
      // Outside of the transaction of the move, which would block those who store a result until its end.
      await this.#source.control.query(
        `with claimed as (select ${columns("t")} from ${quoted(name)} t
           where ${condition("t", this.#moved)} and t.holder is not null for no key update skip locked)
         update ${quoted(name)} t set holder = null, held_until = null from claimed c where (${columns("t")}) = (${columns("c")})`,
      );
    }
  }

  /** Waits for work in progress, such as an export, while the organization works, so that the pause is shorter. */
  async #finishLongWork(tables: readonly MovedTable[]): Promise<void> {
    const before = new Set(await this.#inProgress(tables));
    const until = performance.now() + DRAIN_S * 1_000;
    while (performance.now() < until && (await this.#inProgress(tables)).some((one) => before.has(one)))
      await pause(POLL_MS);
  }

  /** Names of the rows and jobs that are being processed. */
  async #inProgress(tables: readonly MovedTable[]): Promise<string[]> {
    const { rows } = await this.#source.client.query<{ id: string }>(
      "select j.id from graphile_worker._private_jobs j where j.locked_at is not null and j.payload #>> '{context,organizationId}' = $1",
      [this.#organizationId],
    );
    return [...(await this.#held(tables)).map(({ name }) => name), ...rows.map(({ id }) => `job ${id}`)];
  }

  /** Removes waiting jobs until nothing is being processed. */
  async #drain(tables: readonly MovedTable[], jobs: Job[], until: number): Promise<void> {
    for (;;) {
      await this.#revokeClaims(tables);
      await this.#holdFree(tables, until);
      await this.#takeJobs(jobs);
      const inProgress = await this.#inProgress(tables);
      if (inProgress.length === 0) return;
      refuseAfter(until, inProgress);
      await pause(POLL_MS);
    }
  }

  /**
   * Locks rows that are not being processed, and no others. A row that is leased between the snapshot of the statement
   * and its lock is not returned, but PostgreSQL leaves it locked, so that the result could not be stored: where that
   * may have happened, the locks are released again.
   */
  async #holdFree(tables: readonly MovedTable[], until: number): Promise<void> {
    const { client } = this.#source;
    for (;;) {
      const before = new Set((await this.#held(tables)).map(({ version }) => version));
      await client.query("savepoint of_hold");
      await this.#hold(tables);
      const held = await this.#held(tables);
      if (held.every(({ version }) => before.has(version))) {
        await client.query("release savepoint of_hold");
        return;
      }
      await client.query("rollback to savepoint of_hold; release savepoint of_hold");
      refuseAfter(
        until,
        held.map(({ name }) => name),
      );
    }
  }

  /** Locks rows that are not being processed, so that no process leases them. References to them are not blocked. */
  async #hold(tables: readonly MovedTable[]): Promise<void> {
    const locks = tables.map(
      (table) =>
        `select from ${quoted(table.name)} t where ${table.condition("t", this.#moved)}
           ${table.isHeld ? `and ${isFree}` : ""} for no key update of t`,
    );
    await this.#source.client.query(locks.join(";\n"));
  }

  /** The rows that are being processed, and the version of each that says so. */
  async #held(tables: readonly MovedTable[]): Promise<{ name: string; version: string }[]> {
    const parts = tables.map(({ name, key, condition }) => {
      const keys = key.map((column) => `t.${escapeIdentifier(column.name)}`).join(", ");
      return `select concat_ws(' ', '${name}', ${keys}) as name, concat_ws(' ', '${name}', t.ctid, t.xmin) as version
        from ${quoted(name)} t
        where ${condition("t", this.#moved)} and not ${isFree}`;
    });
    return (await this.#source.client.query<{ name: string; version: string }>(parts.join(" union all ")))
      .rows;
  }

  async #takeJobs(jobs: Job[]): Promise<void> {
    const { rows } = await this.#source.client.query<Job>(
      `with taken as (delete from graphile_worker._private_jobs j
         where j.locked_at is null and j.payload #>> '{context,organizationId}' = $1 returning j.*)
       select k.identifier, t.payload, q.queue_name, t.run_at::text, t.max_attempts, t.key, t.priority,
         array(select jsonb_object_keys(t.flags)) as flags
       from taken t join graphile_worker._private_tasks k on k.id = t.task_id
       left join graphile_worker._private_job_queues q on q.id = t.job_queue_id`,
      [this.#organizationId],
    );
    jobs.push(...rows);
  }

  /** Copies differences until there are none. @returns the number of written rows */
  async #catchUp(): Promise<number> {
    let changed = 0;
    for (let round = 1; round <= ROUNDS; round += 1) {
      this.#tell(`Comparing, round ${round}`);
      const differing = await this.#copyDifferences();
      if (differing === 0) return changed;
      changed += differing;
    }
    throw new Error("Both sides still differ.");
  }

  async #copyDifferences(): Promise<number> {
    const { client } = this.#source;
    const target = this.#target.client;
    const { tables } = this.#tables;
    this.#changes = await matchUsers(client, target, this.#tables, this.#changes);
    const differing = await differingTables(client, target, tables, this.#changes);
    let changed = 0;
    for (const table of differing) changed += await this.#copyOf(table).differences();
    if (this.#isPaused) await this.#requireReferences(differing);
    return changed;
  }

  /** Waits for transactions that began before the switch. */
  async #end(): Promise<void> {
    this.#tell("Waiting for running transactions");
    const { control } = this.#source;
    // Not the time at which the switch was recorded: transactions may begin until its commit and not see it.
    const { rows: times } = await control.query<{ now: string }>("select clock_timestamp()::text as now");
    const isOver = async () => {
      const { rows } = await control.query<{ over: boolean }>("select app_private.end_move($1, $2) as over", [
        this.#organizationId,
        times[0]!.now,
      ]);
      return rows[0]!.over;
    };
    for (const until = performance.now() + DRAIN_S * 1_000; !(await isOver()) && performance.now() < until;)
      await pause(POLL_MS);
  }

  async #finishTarget(jobs: readonly Job[]): Promise<void> {
    const target = this.#target.client;
    await this.#reseal();
    await target.query(
      `select app_private.learn_words(array(select t.names from app_private.search_texts t where t.organization_id = $1))`,
      [this.#organizationId],
    );
    // Processes there look up the access of its users again.
    await target.query(
      `insert into app_private.access_versions as v (party_id)
         select unnest(array[$1, '00000000-0000-0000-0000-000000000000']::uuid[] || $2::uuid[])
         on conflict (party_id) do update set version = v.version + 1`,
      [this.#organizationId, [...this.#changes.users.values(), ...this.#changes.userIds]],
    );
    for (const job of jobs)
      await target.query(
        `select graphile_worker.add_job($1, payload => $2, queue_name => $3, run_at => $4, max_attempts => $5,
           job_key => $6, priority => $7, flags => $8)`,
        [
          job.identifier,
          JSON.stringify(job.payload),
          job.queue_name,
          job.run_at,
          job.max_attempts,
          job.key,
          job.priority,
          job.flags,
        ],
      );
    // Removes the record of an earlier move away from there.
    await target.query("delete from app_private.organization_moves where organization_id = $1", [
      this.#organizationId,
    ]);
  }

  /** An installation learns of a city with its first project there. */
  async #copyCities(): Promise<void> {
    const places = this.#table("app_private.project_cities");
    const { rows } = await this.#source.client.query<{ city: object }>(
      `select to_json(c) as city from app_private.cities c where c.id in (select t.city_id from app_private.project_cities t
         where ${places.condition("t", this.#moved)})`,
    );
    const cities = JSON.stringify(rows.map(({ city }) => city));
    await this.#target.client.query(
      `insert into app_private.cities select c.* from json_populate_recordset(null::app_private.cities, $1) c
         on conflict do nothing`,
      [cities],
    );
    const { rows: known } = await this.#target.client.query<{ ours: string; theirs: string }>(
      `select o.id as ours, c.id as theirs from json_populate_recordset(null::app_private.cities, $1) o
       join app_private.cities c on c.country = o.country and app_hidden.fold(c.name) = app_hidden.fold(o.name)
         and app_hidden.fold(c.administrative_area) = app_hidden.fold(o.administrative_area)
       where c.id <> o.id`,
      [cities],
    );
    this.#changes = {
      ...this.#changes,
      cities: new Map(known.map(({ ours, theirs }) => [ours, theirs])),
    };
    if (known.length > 0) await this.#copyOf(places).differences();
  }

  /** Reseals secrets with the keys of the other installation. */
  async #reseal(): Promise<void> {
    for (const table of this.#tables.tables)
      for (const name of table.sealed) {
        const [key] = table.key;
        const { rows } = await this.#source.client.query<{ row: string; sealed: string }>(
          `select t.${key!.name}::text as row, t.${name} as sealed from ${quoted(table.name)} t
           where t.${name} is not null and ${table.condition("t", this.#moved)}`,
        );
        for (const { row, sealed } of rows) {
          const place = { column: `${table.name}.${name}`, row };
          await this.#target.client.query(
            `update ${quoted(table.name)} set ${name} = $2 where ${key!.name} = $1`,
            [row, this.#target.seal.seal(this.#source.seal.open(sealed, place), place)],
          );
        }
      }
  }

  async #putAside(): Promise<void> {
    await this.#source.client.query("select app_private.put_aside_organization($1)", [this.#organizationId]);
    await this.#end();
  }
}

/** @throws if work should have ended by then, in milliseconds of the process */
function refuseAfter(until: number, inProgress: readonly string[]): void {
  if (performance.now() > until)
    throw new Error(
      `Work for the organization has not ended within ${DRAIN_S} s; try again later: ${inProgress.slice(0, MOST_NAMED).join(", ")}.`,
    );
}

/** SQL: no living process holds the row. */
const isFree = "(t.holder is null or t.holder <> all (array(select app_private.living_connections())))";

interface Job {
  identifier: string;
  payload: unknown;
  queue_name: string | null;
  run_at: string;
  max_attempts: number;
  key: string | null;
  priority: number;
  flags: string[];
}

/** Removes the rows of an organization that has moved. @returns the number of rows */
export async function removeMoved(client: Client, organizationId: string): Promise<number> {
  const { tables } = await readMovedTables(client);
  const moved: Moved = { organizationId, userIds: [] };
  await client.query("begin");
  try {
    await client.query("set local session_replication_role = replica");
    await client.query(
      `update app_private.stored_files set organization_id = null, check_at = now() where organization_id = $1
         or checksum in (select a.checksum from app_private.event_archives a where a.organization_id = $1)`,
      [organizationId],
    );
    // Rows are found through other rows, so all are found before any is deleted. The slugs of the organization stay
    // in the directory.
    const found = [];
    for (const { name, isAccount, condition } of tables)
      if (!isAccount)
        found.push({
          name,
          rows: await rowsAt(
            client,
            name,
            `${condition("t", moved)}${name === "app_private.slugs" ? " and t.table_name <> 'organizations'" : ""}`,
          ),
        });
    let count = 0;
    for (const { name, rows } of found) {
      const { rowCount } = await client.query(
        `delete from ${quoted(name)} t using unnest($1::oid[], $2::tid[]) r (relation, place)
           where t.tableoid = r.relation and t.ctid = r.place`,
        [rows.map(({ relation }) => relation), rows.map(({ place }) => place)],
      );
      count += rowCount!;
    }
    await client.query("commit");
    return count;
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

async function rowsAt(client: Client, table: string, condition: string) {
  const { rows } = await client.query<{ relation: string; place: string }>(
    `select t.tableoid::text as relation, t.ctid::text as place from ${quoted(table)} t where ${condition}`,
  );
  return rows;
}
