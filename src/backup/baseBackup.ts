/** Base backups over PostgreSQL's replication protocol: https://www.postgresql.org/docs/18/protocol-replication.html */
import type { Writable } from "node:stream";
import type { Client, Connection, Submittable } from "pg";
import { DatabaseClient } from "../database/client.ts";

/** The server's report about a complete base backup. */
export interface BaseBackup {
  startPosition: string;
  endPosition: string;
  timeline: number;
}

export interface BaseBackupOptions {
  /** A login that may replicate. */
  connectionString: string;
  /** Receives the cluster as one tar archive. Ended when it is complete. */
  tar: Writable;
  /** Receives the manifest: names, sizes and SHA-256 of all files. Ended when it is complete. */
  manifest: Writable;
  /** Called periodically with the bytes received and the total, which is an estimate. */
  onProgress?: (bytes: number, of: number) => void;
}

/** The connection that emits its messages, which pg's types omit. */
type Messages = Connection & { stream: { pause(): void; resume(): void } };

/**
 * Copies a running cluster, including the log that makes the copy consistent.
 * @throws Error with a sentence for the user if the login may not replicate, or the cluster has other table spaces; errors of the two
 * streams.
 */
export async function baseBackup(options: BaseBackupOptions): Promise<BaseBackup> {
  // "true" requests a connection for replication commands, without SQL.
  const settings = {
    connectionString: options.connectionString,
    replication: "true",
    // The initial checkpoint sends nothing until it is written.
    answerWithin: 60 * 60_000,
  };
  // A full disk makes them fail before the server has responded.
  const streamFailed = new Promise<never>((_, reject) => {
    for (const stream of [options.tar, options.manifest]) stream.on("error", reject);
  });
  streamFailed.catch(() => {});
  const client: Client = new DatabaseClient(settings);
  await client.connect().catch((error: Error) => {
    throw new Error(
      `The database does not take a base backup from this login: ${error.message}. It needs the attribute REPLICATION and an entry "replication" in pg_hba.conf.`,
      { cause: error },
    );
  });
  try {
    return await new Promise<BaseBackup>((resolve, reject) => {
      streamFailed.catch(reject);
      client.once("error", reject);
      client.query(new Command(options, resolve, reject));
    });
  } finally {
    // The rest of the data is discarded.
    (client as Client & { connection: Messages }).connection.stream.resume();
    await client.end();
  }
}

/** Types of the server's messages within the copy. */
const ARCHIVE = 0x6e;
const MANIFEST = 0x6d;
const DATA = 0x64;
const PROGRESS = 0x70;

class Command implements Submittable {
  readonly #options: BaseBackupOptions;
  readonly #resolve: (backup: BaseBackup) => void;
  readonly #reject: (error: Error) => void;
  #connection: Messages | undefined;
  #rows: (string | null)[][] = [];
  #into: Writable | undefined;
  #archives = 0;
  #failed = false;
  #isPaused = false;

  constructor(
    options: BaseBackupOptions,
    resolve: (backup: BaseBackup) => void,
    reject: (error: Error) => void,
  ) {
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  submit(connection: Connection): void {
    this.#connection = connection as Messages;
    // Without WAIT, because the required log is included: a broken archive would be waited for indefinitely.
    connection.query(
      "BASE_BACKUP (label 'Plat', progress true, checkpoint 'fast', wal true, wait false, manifest 'yes', manifest_checksums 'SHA256')",
    );
  }

  handleRowDescription(): void {}

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    this.#rows.push(fields);
    // The first row is the start position; the following ones are table spaces, of which the main one has no location.
    if (this.#rows.length > 2 && !this.#into)
      this.#fail(
        new Error("The cluster has table spaces outside of its folder, which this backup does not take."),
      );
  }

  handleCopyData({ chunk }: { chunk: Buffer }): void {
    // A copy, because the protocol parser reuses its memory.
    const content = Buffer.from(chunk.subarray(1));
    if (chunk[0] === DATA) this.#write(content);
    else if (chunk[0] === PROGRESS)
      this.#options.onProgress?.(Number(content.readBigInt64BE()), Number(this.#rows[1]?.[2] ?? 0) * 1024);
    else if (chunk[0] === MANIFEST) this.#next(this.#options.manifest);
    else if (chunk[0] === ARCHIVE && this.#archives++ === 0) this.#next(this.#options.tar);
    else this.#fail(new Error("The server sent what is no base backup of PostgreSQL 15 or newer."));
  }

  #next(into: Writable | undefined): void {
    this.#into?.end();
    this.#into = into;
    // An ended stream does not emit that its buffer was written.
    this.#resume();
  }

  /** Back-pressure: reads nothing more from the server until the disk has caught up. */
  #write(content: Buffer): void {
    const into = this.#into;
    if (!into || this.#failed || into.write(content) || this.#isPaused) return;
    this.#isPaused = true;
    this.#connection?.stream.pause();
    into.once("drain", () => this.#resume());
  }

  #resume(): void {
    this.#isPaused = false;
    this.#connection?.stream.resume();
  }

  handleCommandComplete(): void {}
  handleCopyInResponse(): void {}
  handlePortalSuspended(): void {}
  handleEmptyQuery(): void {}

  handleReadyForQuery(): void {
    const isWhole = this.#into === this.#options.manifest;
    this.#next(undefined);
    const [first, last] = [this.#rows[0], this.#rows.at(-1)];
    if (this.#failed) return;
    if (!isWhole || !first || !last) this.#fail(new Error("The server sent no base backup."));
    else
      this.#resolve({
        startPosition: String(first[0]),
        endPosition: String(last[0]),
        timeline: Number(first[1]),
      });
  }

  handleError(error: Error): void {
    this.#fail(error);
  }

  #fail(error: Error): void {
    this.#failed = true;
    this.#reject(error);
  }
}
