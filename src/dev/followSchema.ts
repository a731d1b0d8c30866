/** Has the database and the API of a developer follow the files of the schema, from one save to the next. */
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

/** Where a developer reads what became of a save. */
export type Say = (text: string) => void;

/** Who saves one file after the other needs the whole schema after the last one only. */
const restMs = 300;

/**
 * Watches the folder of migrations. A file of objects that was saved is applied at once, and the API is built anew;
 * afterwards, and for all other changes, the whole schema is reconciled with a reference made from the files. After a
 * fault, which is told with its place, database and API stay in the state before.
 */
export function followSchema(say: Say, folder = migrationsFolder): Follow {
  return async ({ loginUrl, authenticatorUrl, log, reload, buildSchema }) => {
    let applied = statementsOf(await readObjects(folder));
    let appliedCurrent = await readCurrent(folder);
    let appliedMigrations = await migrationsHash(folder);
    const thread = startSchemaThread({ loginUrl, authenticatorUrl, folder, say });
    let generation = 0;
    let work = Promise.resolve();
    let whole = Promise.resolve();
    let isServed = true;
    let isStopping = false;
    /** Whether a table was made anew, which lacks what follows from all tables until the whole was brought up to date. */
    let isRemade = false;
    const check = oneAtATime(() =>
      thread
        .check()
        .catch((error: unknown) =>
          log.debug({ event: "schema.check_failed", err: error }, "The schema was not checked."),
        ),
    );

    const serve = async (what: string, since: number, schema?: Promise<GraphQLSchema>) => {
      const done = performance.now();
      isServed = false;
      await reload(schema);
      isServed = true;
      say(`${what} in ${ms(done - since)}; served ${after(since)}.`);
    };
    const told = async (step: () => Promise<void>) => {
      try {
        await step();
      } catch (error) {
        // Where the end of the process cuts it off, nobody waits for it.
        if (isStopping) return;
        say(`${(error as Error).message}\nThe API goes on as it was.`);
        if ((error as Error).name !== "SchemaError")
          log.debug(
            { event: "schema.follow_failed", err: error },
            "A change of the schema was not followed.",
          );
      }
    };

    /** What can be put in its place alone. @returns whether it was. */
    const quickly = async (since: number): Promise<boolean> => {
      const files = await readObjects(folder);
      const removed = [...applied.keys()].filter((path) => !files.some((file) => file.path === path));
      const none = { text: "", area: "", definitions: [], rest: [] };
      const changed = [...files, ...removed.map((path) => ({ ...none, path }))]
        .map((file): ChangedFile => ({ file, before: applied.get(file.path) ?? new Set() }))
        .filter(({ file, before }) => isChanged(textsOf(file), before));
      const current = { folder, text: await readCurrent(folder), applied: appliedCurrent };
      const names = changed.map(({ file }) => relative(folder, file.path));
      if (current.text !== appliedCurrent) names.unshift(currentFile);
      if (names.length === 0) return false;
      // What was committed is gone from the current migration, and stays in the database.
      if ((await migrationsHash(folder)) !== appliedMigrations) return false;
      await thread.unchanging();
      if (!(await migrateOn(ownerUrl(loginUrl), (owner) => applyChanges(owner, files, changed, current))))
        return false;
      applied = statementsOf(files);
      isRemade ||= Boolean(editOf(current.text, appliedCurrent)?.tables.length);
      if (isServed && current.text === appliedCurrent && !changesApi(changed)) {
        say(`Applied ${names.join(", ")}; it holds ${after(since)}.`);
        return true;
      }
      appliedCurrent = current.text;
      await serve(`Applied ${names.join(", ")}`, since);
      return true;
    };
    /** @param isFirst whether nothing of the save was applied yet, so that the API will be built anew. */
    const wholly = async (mine: number, since: number, isFirst: boolean): Promise<boolean> => {
      if (mine !== generation) return false;
      let brought = false;
      let schema: Promise<GraphQLSchema> | undefined;
      /** Whether the API shows what the reference has, whatever the database still lacks of it. */
      let isReference = false;
      const [files, current] = [await readObjects(folder), await readCurrent(folder)];
      const migrations = await migrationsHash(folder);
      const bringTo = () => {
        applied = statementsOf(files);
        appliedCurrent = current;
        appliedMigrations = migrations;
      };
      const isBrought = await thread.bring(
        { mine, isFirst },
        {
          // PERF: beside the comparing, from the reference, which is what the database becomes.
          build: async (url) => {
            schema = buildSchema(authenticatorUrlOf(url));
            await schema;
          },
          changed: async ({ isChanged: hasChanged, isShown, hasDrift }) => {
            bringTo();
            if (mine !== generation || (isServed && isReference)) return;
            if (isServed && !isShown) {
              // After what was applied and told already there is mostly nothing left to do.
              if (isFirst || hasChanged) say(`${broughtWhole}; it holds ${after(since)}.`);
              return;
            }
            const ofReference = hasDrift ? undefined : schema;
            await serve(broughtWhole, since, ofReference);
            isReference = ofReference !== undefined;
          },
          noted: (event, text) => {
            if (event !== "schema.drift") brought = true;
            if (event === "migration.current") isServed = false;
            say(text);
          },
        },
      );
      if (isBrought) bringTo();
      if (mine !== generation) return false;
      if (!isServed) await serve(broughtWhole, since);
      return brought;
    };

    const stop = await watchFolder(folder, () => {
      const mine = (generation = thread.saved());
      const since = performance.now();
      work = work.then(() =>
        told(async () => {
          if (mine !== generation) return;
          const isApplied = await quickly(since);
          // Not waited for: the next save comes first.
          whole = whole.then(() =>
            told(async () => {
              if (isApplied) await pause(restMs);
              if (mine !== generation) return;
              // Beside the whole: what was forgotten is told as early as it can be seen.
              if (isApplied && !isRemade) check();
              const isBrought = await wholly(mine, since, !isApplied);
              if ((isBrought || isRemade) && mine === generation) {
                isRemade = false;
                check();
              }
            }),
          );
        }),
      );
    });
    say(
      `Following ${relative(process.cwd(), folder) || basename(folder)}: a file that is saved is applied, and served.`,
    );
    return {
      stop: async () => {
        isStopping = true;
        generation = thread.saved();
        stop();
        await work;
        await whole;
        await thread.stop();
      },
    };
  };
}

const broughtWhole = "Brought the whole schema up to date";

/** Runs work that tells its own failures: once at a time, and once more when it was asked for meanwhile. */
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
