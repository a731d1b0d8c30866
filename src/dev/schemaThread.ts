/**
 * Brings the whole schema of a developer's database up to date, and checks it, in a thread of its own: to read and compare
 * catalogs takes as long as to build the schema of GraphQL, which blocks the thread that serves.
 */
import { Worker } from "node:worker_threads";
import { startScratchServer } from "../database/referenceCluster.ts";

/** Places in the memory that both threads see. */
export const state = {
  /** The number of the last save. */
  generation: 0,
  /** 1 while the database is being changed, which an older reference would undo a newer save in. */
  isChanging: 1,
} as const;

export interface ThreadData {
  loginUrl: string;
  authenticatorUrl: string;
  /** The scratch server that references are made on. */
  serverUrl: string;
  folder: string;
  shared: Int32Array;
}

/** What to bring the database to. */
export interface FullUpdate {
  /** The save it is for; given up when there is a later one. */
  mine: number;
  /** Whether nothing of the save was applied yet, so that the API will be rebuilt. */
  isFirst: boolean;
}

/** Resulting state of the database. */
export interface Changed {
  /** Whether anything had to be made, replaced or dropped. */
  isChanged: boolean;
  /** Whether the API shows anything of it. */
  isShown: boolean;
  /** Whether the database has other structure than the files make. */
  hasDrift: boolean;
}

interface Call {
  id: number;
  call: "whole" | "check" | "stop";
  given?: FullUpdate;
}
export type ToThread = Call | { answer: number; failure?: Failure };

/** What the thread has the main thread do. */
export type Question = { build: string } | { changed: Changed };

export type FromThread =
  | { said: string }
  | { noted: { event: string; text: string } }
  | { id: number; ask: Question }
  | { done: number; value?: boolean; failure?: Failure };

/** An error, as it goes from one thread to the other. */
export interface Failure {
  name: string;
  message: string;
  stack?: string | undefined;
}

export const failureOf = ({ name, message, stack }: Error): Failure => ({ name, message, stack });
export const errorOf = (failure: Failure): Error => Object.assign(new Error(failure.message), failure);

export interface SchemaThreadOptions extends Omit<ThreadData, "shared" | "serverUrl"> {
  /** Where the developer reads what the checks find. */
  say(text: string): void;
}

/** What the main thread does while the database is being brought up to date. */
export interface UpdateCallbacks {
  /** Builds the schema of GraphQL from the reference, which is what the database becomes. */
  build(authenticatorOfReference: string): Promise<unknown>;
  /** The database is as the files make it, but for what shows when it is read again. */
  changed(what: Changed): Promise<void>;
  noted(event: string, text: string): void;
}

export interface SchemaThread {
  /** Tells the thread that there was a save; running work for an earlier one is aborted. @returns its number. */
  saved(): number;
  /** Waits while the database is being changed. */
  unchanging(): Promise<void>;
  /**
   * Brings the whole schema up to date.
   * @returns whether it is; not where there was a later save, or nothing to do.
   * @throws Error named SchemaError for a fault in the files
   */
  bring(what: FullUpdate, beside: UpdateCallbacks): Promise<boolean>;
  /** Says what the checks find. */
  check(): Promise<void>;
  /** Ends it, and the scratch server. */
  stop(): Promise<void>;
}

/** Starts the thread, and the scratch server that it makes references on; nobody has to wait for either. */
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
      if ("said" in message) return say(message.said);
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
  // In this thread: what a process leaves behind that ends at once is ended by its main thread.
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
