/**
 * Updates and checks the whole schema of a developer's database in a thread of its own: reading and comparing
 * catalogs takes as long as building the GraphQL schema, and would block the thread that serves.
 */
import { Worker } from "node:worker_threads";
import { startScratchServer } from "../database/referenceCluster.ts";

/** Indexes in the memory that both threads share. */
export const state = {
  /** The number of the last save. */
  generation: 0,
  /** 1 while the database is being changed. Meanwhile, an older reference would revert a newer save. */
  isChanging: 1,
} as const;

export interface ThreadData {
  loginUrl: string;
  authenticatorUrl: string;
  /** The scratch server on which references are created. */
  serverUrl: string;
  folder: string;
  shared: Int32Array;
}

/** A complete update of the database. */
export interface FullUpdate {
  /** The number of its save; it is aborted if there is a later one. */
  mine: number;
  /** Whether nothing of the save was applied yet, so that the API will be rebuilt. */
  isFirst: boolean;
}

/** Resulting state of the database. */
export interface Changed {
  /** Whether any object was created, replaced or dropped. */
  isChanged: boolean;
  /** Whether the change is visible in the API. */
  isShown: boolean;
  /** Whether the structure of the database differs from that of the files. */
  hasDrift: boolean;
}

interface Call {
  id: number;
  call: "whole" | "check" | "stop";
  given?: FullUpdate;
}
export type ToThread = Call | { answer: number; failure?: Failure };

/** Requests of the thread to the main thread. */
export type Question = { build: string } | { changed: Changed };

export type FromThread =
  | { print: string }
  | { noted: { event: string; text: string } }
  | { id: number; ask: Question }
  | { done: number; value?: boolean; failure?: Failure };

/** An error in a form that can be sent between threads. */
export interface Failure {
  name: string;
  message: string;
  stack?: string | undefined;
}

/** Copies an error for another thread, which would lose its name. */
export const failureOf = ({ name, message, stack }: Error): Failure => ({ name, message, stack });
/** The error of a copy, with its former name and stack. */
export const errorOf = (failure: Failure): Error => Object.assign(new Error(failure.message), failure);

export interface SchemaThreadOptions extends Omit<ThreadData, "shared" | "serverUrl"> {
  /** Prints a finding for the developer. */
  say(text: string): void;
}

/** Work of the main thread during an update. */
export interface UpdateCallbacks {
  /** Builds the GraphQL schema from the reference, which the database will match. */
  build(authenticatorOfReference: string): Promise<unknown>;
  /** The database was changed. Reading it again may still show differences. */
  changed(what: Changed): Promise<void>;
  noted(event: string, text: string): void;
}

export interface SchemaThread {
  /** Notifies the thread of a save, which aborts work for an earlier one. @returns the number of the save */
  saved(): number;
  /** Waits while the database is being changed. */
  unchanging(): Promise<void>;
  /**
   * Updates the whole schema.
   * @returns whether it was updated: not if there was a later save, or no difference
   * @throws Error named SchemaError for an error in the files
   */
  bring(what: FullUpdate, beside: UpdateCallbacks): Promise<boolean>;
  /** Prints the findings of the checks. */
  check(): Promise<void>;
  /** Stops the thread and the scratch server. */
  stop(): Promise<void>;
}

/** Starts the thread and its scratch server. Nobody has to wait for either. */
export function startSchemaThread({ say, ...data }: SchemaThreadOptions): SchemaThread {
  const shared = new Int32Array(new SharedArrayBuffer(8));
  const calls = new Map<number, { resolve(value: boolean): void; reject(error: Error): void }>();
  let called = 0;
  let broken: Error | undefined;
  let present: UpdateCallbacks | undefined;
  let bringing: Promise<unknown> = Promise.resolve();

  const start = (serverUrl: string): Worker => {
    const worker = new Worker(new URL("./buildThread.ts", import.meta.url), {
      workerData: { ...data, serverUrl, shared } satisfies ThreadData,
      name: "plat-schema",
    });
    const post = (message: ToThread) => worker.postMessage(message);
    const answer = async (id: number, ask: Question): Promise<void> => {
      try {
        await ("build" in ask ? present?.build(ask.build) : present?.changed(ask.changed));
        post({ answer: id });
      } catch (error) {
        post({ answer: id, failure: failureOf(error as Error) });
      }
    };
    worker.on("message", (message: FromThread) => {
      if ("print" in message) return say(message.print);
      if ("noted" in message) return present?.noted(message.noted.event, message.noted.text);
      if ("ask" in message) return void answer(message.id, message.ask);
      const one = calls.get(message.done);
      calls.delete(message.done);
      if (message.failure) one?.reject(errorOf(message.failure));
      else one?.resolve(message.value ?? false);
    });
    worker.once("error", (error: Error) => (broken = error));
    worker.once("exit", () => {
      broken ??= new Error("The thread that follows the schema has ended.");
      Atomics.store(shared, state.isChanging, 0);
      for (const { reject } of calls.values()) reject(broken);
      calls.clear();
    });
    return worker;
  };
  // In this thread: if the process ends at once, its main thread cleans up.
  const server = startScratchServer();
  const started = server.then(({ connectionString }) => start(connectionString));
  started.catch(() => undefined);

  async function call(name: Call["call"], given?: FullUpdate): Promise<boolean> {
    const worker = await started;
    if (broken) throw broken;
    const id = ++called;
    return await new Promise<boolean>((resolve, reject) => {
      calls.set(id, { resolve, reject });
      worker.postMessage({ id, call: name, ...(given && { given }) } satisfies ToThread);
    });
  }

  return {
    saved: () => Atomics.add(shared, state.generation, 1) + 1,
    unchanging: async () => {
      if (Atomics.load(shared, state.isChanging) === 1) await bringing.catch(() => undefined);
    },
    bring: (what, beside) => {
      present = beside;
      const done = call("whole", what);
      bringing = done;
      return done;
    },
    check: async () => void (await call("check")),
    stop: async () => {
      const worker = await started.catch(() => undefined);
      if (worker && !broken) await call("stop").catch(() => undefined);
      await worker?.terminate();
      await server.then(({ stop }) => stop()).catch(() => undefined);
    },
  };
}
