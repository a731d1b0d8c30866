/** Keeps the database and the API of a developer up to date with the files of the schema. */
import { basename, relative } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { GraphQLSchema } from "postgraphile/graphql";
import { currentFile, readCurrent } from "../database/current.ts";
import { migrationsFolder, migrationsHash } from "../database/committed.ts";
import { migrateOn } from "../database/onConnection.ts";
import { authenticatorUrl as authenticatorUrlOf } from "../database/roles.ts";
import { readObjects, type ObjectFile } from "../database/objects.ts";
import { ownerUrl } from "../database/roles.ts";
import type { Follow } from "../service/startApi.ts";
import { editOf } from "./editCurrent.ts";
import { startSchemaThread } from "./schemaThread.ts";
import { applyChanges, changesApi, textsOf, type ChangedFile } from "./quickApply.ts";
import { watchFolder } from "./watchFolder.ts";

/** Prints the result of a save. */
export type Output = (text: string) => void;

/** After several saves in quick succession, only the last one needs a complete update. Milliseconds. */
const restMs = 300;

/**
 * Watches the folder of migrations. A saved file of objects is applied immediately, and the API is rebuilt. Then the
 * whole schema is reconciled with a reference that is created from the files; other changes only take this second
 * step. Errors are printed with their location; database and API then keep their previous state.
 */
export function followSchema(output: Output, folder = migrationsFolder): Follow {
  return async (options) => {
    const follower = new SchemaFollower(options, output, folder);
    await follower.start();
    return { stop: () => follower.stop() };
  };
}

class SchemaFollower {
  readonly #options: Parameters<Follow>[0];
  readonly #output: Output;
  readonly #folder: string;
  readonly #thread: ReturnType<typeof startSchemaThread>;
  readonly #check: () => void;
  /** Statements of each file as last applied. */
  #applied = new Map<string, ReadonlySet<string>>();
  #appliedCurrent = "";
  #appliedMigrations = "";
  /** The number of the last save. */
  #generation = 0;
  #work = Promise.resolve();
  #whole = Promise.resolve();
  /** Whether the API serves the schema of the database. */
  #isServed = true;
  #isStopping = false;
  /** Whether a table was recreated. It lacks objects derived from all tables until the next complete update. */
  #isRemade = false;
  #unwatch = (): void => {};

  constructor(options: Parameters<Follow>[0], output: Output, folder: string) {
    const { loginUrl, authenticatorUrl, log } = options;
    this.#options = options;
    this.#output = output;
    this.#folder = folder;
    this.#thread = startSchemaThread({ loginUrl, authenticatorUrl, folder, say: output });
    this.#check = oneAtATime(() =>
      this.#thread
        .check()
        .catch((error: unknown) =>
          log.debug({ event: "schema.check_failed", err: error }, "Checking the schema failed."),
        ),
    );
  }

  async start(): Promise<void> {
    const folder = this.#folder;
    this.#applied = statementsOf(await readObjects(folder));
    this.#appliedCurrent = await readCurrent(folder);
    this.#appliedMigrations = await migrationsHash(folder);
    this.#unwatch = await watchFolder(folder, () => this.#saved());
    this.#output(
      `Following ${relative(process.cwd(), folder) || basename(folder)}: a file that is saved is applied, and served.`,
    );
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#generation = this.#thread.saved();
    this.#unwatch();
    await this.#work;
    await this.#whole;
    await this.#thread.stop();
  }

  #saved(): void {
    const mine = (this.#generation = this.#thread.saved());
    const since = performance.now();
    this.#work = this.#work.then(() =>
      this.#reporting(async () => {
        if (mine !== this.#generation) return;
        const isApplied = await this.#quickly(since);
        // Not awaited: the next save takes precedence.
        this.#whole = this.#whole.then(() => this.#reporting(() => this.#complete(mine, since, isApplied)));
      }),
    );
  }

  /** Updates everything after a save, and checks it. */
  async #complete(mine: number, since: number, isApplied: boolean): Promise<void> {
    if (isApplied) await pause(restMs);
    if (mine !== this.#generation) return;
    // Concurrently, so that omissions are reported as early as possible.
    if (isApplied && !this.#isRemade) this.#check();
    const isBrought = await this.#wholly(mine, since, !isApplied);
    if ((isBrought || this.#isRemade) && mine === this.#generation) {
      this.#isRemade = false;
      this.#check();
    }
  }

  async #serve(what: string, since: number, schema?: Promise<GraphQLSchema>): Promise<void> {
    const done = performance.now();
    this.#isServed = false;
    await this.#options.reload(schema);
    this.#isServed = true;
    this.#output(`${what} in ${ms(done - since)}; served ${after(since)}.`);
  }

  /** Runs a step, and reports an error. */
  async #reporting(step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      // If it is interrupted by the end of the process, nobody waits for it.
      if (this.#isStopping) return;
      this.#output(`${(error as Error).message}\nThe API goes on as it was.`);
      if ((error as Error).name !== "SchemaError")
        this.#options.log.debug(
          { event: "schema.follow_failed", err: error },
          "Applying a change of the schema failed.",
        );
    }
  }

  /** Applies changes that can be replaced one by one. @returns whether that was enough */
  async #quickly(since: number): Promise<boolean> {
    const files = await readObjects(this.#folder);
    const removed = [...this.#applied.keys()].filter((path) => !files.some((file) => file.path === path));
    const none = { text: "", area: "", definitions: [], rest: [] };
    const changed = [...files, ...removed.map((path) => ({ ...none, path }))]
      .map((file): ChangedFile => ({ file, before: this.#applied.get(file.path) ?? new Set() }))
      .filter(({ file, before }) => isChanged(textsOf(file), before));
    const current = {
      folder: this.#folder,
      text: await readCurrent(this.#folder),
      applied: this.#appliedCurrent,
    };
    const names = changed.map(({ file }) => relative(this.#folder, file.path));
    if (current.text !== this.#appliedCurrent) names.unshift(currentFile);
    if (names.length === 0) return false;
    // A committed migration is removed from current.sql, but remains in the database.
    if ((await migrationsHash(this.#folder)) !== this.#appliedMigrations) return false;
    await this.#thread.unchanging();
    if (
      !(await migrateOn(ownerUrl(this.#options.loginUrl), (owner) =>
        applyChanges(owner, files, changed, current),
      ))
    )
      return false;
    this.#applied = statementsOf(files);
    this.#isRemade ||= Boolean(editOf(current.text, this.#appliedCurrent)?.tables.length);
    if (this.#isServed && current.text === this.#appliedCurrent && !changesApi(changed)) {
      this.#output(`Applied ${names.join(", ")}; it holds ${after(since)}.`);
      return true;
    }
    this.#appliedCurrent = current.text;
    await this.#serve(`Applied ${names.join(", ")}`, since);
    return true;
  }

  /** @param isFirst whether nothing of the save was applied yet, so that the API will be rebuilt */
  async #wholly(mine: number, since: number, isFirst: boolean): Promise<boolean> {
    if (mine !== this.#generation) return false;
    let brought = false;
    let schema: Promise<GraphQLSchema> | undefined;
    /** Whether the API serves the schema of the reference, even if the database still differs from it. */
    let isReference = false;
    const [files, current] = [await readObjects(this.#folder), await readCurrent(this.#folder)];
    const migrations = await migrationsHash(this.#folder);
    const bringTo = () => {
      this.#applied = statementsOf(files);
      this.#appliedCurrent = current;
      this.#appliedMigrations = migrations;
    };
    const isBrought = await this.#thread.bring(
      { mine, isFirst },
      {
        // PERF: concurrently with the comparison. It is built from the reference, which the database will match.
        build: async (url) => {
          schema = this.#options.buildSchema(authenticatorUrlOf(url));
          await schema;
        },
        changed: async ({ isChanged: hasChanged, isShown, hasDrift }) => {
          bringTo();
          if (mine !== this.#generation || (this.#isServed && isReference)) return;
          if (this.#isServed && !isShown) {
            // Usually everything was already applied and reported.
            if (isFirst || hasChanged) this.#output(`${broughtWhole}; it holds ${after(since)}.`);
            return;
          }
          const ofReference = hasDrift ? undefined : schema;
          await this.#serve(broughtWhole, since, ofReference);
          isReference = ofReference !== undefined;
        },
        noted: (event, text) => {
          if (event !== "schema.drift") brought = true;
          if (event === "migration.current") this.#isServed = false;
          this.#output(text);
        },
      },
    );
    if (isBrought) bringTo();
    if (mine !== this.#generation) return false;
    if (!this.#isServed) await this.#serve(broughtWhole, since);
    return brought;
  }
}

const broughtWhole = "Brought the whole schema up to date";

/** Runs work that reports its own errors. One run at a time; requests during a run cause one more. */
function oneAtATime(work: () => Promise<void>): () => void {
  let running = false;
  let isWanted = false;
  const run = async () => {
    running = true;
    try {
      while (isWanted) {
        isWanted = false;
        await work();
      }
    } finally {
      running = false;
    }
  };
  return () => {
    isWanted = true;
    if (!running) run().catch(() => undefined);
  };
}

function isChanged(now: ReadonlySet<string>, before: ReadonlySet<string>): boolean {
  return now.size !== before.size || [...now].some((text) => !before.has(text));
}

function statementsOf(files: readonly ObjectFile[]): Map<string, ReadonlySet<string>> {
  return new Map(files.map((file) => [file.path, textsOf(file)]));
}

const ms = (duration: number) => `${Math.round(duration).toLocaleString("en")} ms`;
const after = (since: number) => `${ms(performance.now() - since)} after it was saved`;
