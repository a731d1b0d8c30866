import type { JobHelpers, Task } from "graphile-worker";
import type { Claims } from "../database/claims.ts";
import { CodedError } from "../base/errors.ts";
import { formats } from "../exports/formats.ts";
import { EventArchives } from "../archives/index.ts";
import { openExportSource } from "../exports/exportSource.ts";
import { withIncoming } from "../providers/files/incoming.ts";
import { removeLeftovers } from "../providers/files/leftovers.ts";
import { idOf } from "../jobs/payload.ts";

/** Row of app_private.start_export. */
interface Run {
  worker: string;
  organization_id: string;
  requested_by_id: string;
  token_id: string | null;
  token_organization_id: string | null;
  token_scopes: string | null;
  subject: string;
  /** Whether it contains a report. */
  is_report: boolean;
  format: string;
  filename: string;
  stale_key: string | null;
  /** The time zone of the organization. */
  slug: string;
}

/** Bytes; the maximum of the field filesize. */
const largest = 2_000_000_000;
const beatEveryMs = 1000;

/** Why the work stopped without a failure: it was cancelled, a permission was lost, or another worker has the export. */
class Stopped extends Error {}

/**
 * Writes the export {id}: rows as its requester sees them → a local file → the store. A concurrent run waits until the first is finished,
 * dead, or its lease has expired; a run after an interruption starts over, and only the worker that holds the export can complete it, so
 * that no row is written twice.
 */
const task: Task = async (payload, helpers) => {
  const id = idOf(payload);
  // Reads see what is due as expired.
  await helpers.query("select app_private.expire_before_export($1)", [id]);
  const { rows } = await helpers.query<Run>("select * from app_private.start_export($1, $2)", [
    id,
    helpers.job.locked_by,
  ]);
  const run = rows[0];
  if (!run) return;
  if (run.stale_key !== null) await helpers.fileStore.delete([run.stale_key]);

  const giveUp = (status: string | null, error: string | null) =>
    helpers.query("select app_private.give_up_export($1, $2, $3, $4)", [id, run.worker, status, error]);
  const work = new Work(helpers, id, run);
  try {
    await work.run();
  } catch (error) {
    if (error instanceof Stopped) return;
    if (helpers.abortSignal.aborted) {
      await giveUp(null, null);
      throw new Error("The service stops; the export is written later.", { cause: error });
    }
    const refusal = refusalOf(error, run);
    await giveUp(refusal?.status ?? null, refusal?.message ?? "It broke off.");
    if (!refusal) throw error;
  } finally {
    work.end();
  }
};

/** Failures that are not faults of the service and would repeat. */
function refusalOf(error: unknown, { subject, slug }: Run): { status: string; message: string } | undefined {
  if (error instanceof CodedError && error.code === "PAYLOAD_TOO_LARGE")
    return {
      status: "FAILED",
      message:
        subject === "ORGANIZATION"
          ? `The archive would be over 2 GB. Have one without files, or ask whoever runs the service to write one of any size: npm run organizations -- export ${slug} --to ${slug}.zip`
          : "The file would be over 2 GB; filter the rows, or name fewer columns.",
    };
  const { code, message, detail } = error as { code?: string; message: string; detail?: string };
  if (code !== "PLAT0") return undefined;
  return { status: JSON.parse(detail ?? "{}").code === "FORBIDDEN" ? "CANCELLED" : "FAILED", message };
}

class Work {
  readonly #helpers: JobHelpers;
  readonly #id: string;
  readonly #run: Run;
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  #rows = 0;
  #beat: NodeJS.Timeout | undefined;

  constructor(helpers: JobHelpers, id: string, run: Run) {
    this.#helpers = helpers;
    this.#id = id;
    this.#run = run;
    this.#signal = AbortSignal.any([helpers.abortSignal, this.#stop.signal]);
    this.#nextBeat();
  }

  end(): void {
    clearTimeout(this.#beat);
    this.#stop.abort(new Stopped());
  }

  /** Renews the lease, and checks whether to continue. */
  #nextBeat(): void {
    this.#beat = setTimeout(async () => {
      try {
        const { rows } = await this.#helpers.query<{ on: boolean }>(
          "select app_private.export_goes_on($1, $2, $3) as on",
          [this.#id, this.#run.worker, this.#rows],
        );
        if (!rows[0]!.on) this.#stop.abort(new Stopped("The export is not to be written any more."));
      } catch (error) {
        // The lease is valid for a while; completion checks it again.
        this.#helpers.logger.warn(`Recording the progress of an export failed: ${(error as Error).message}`, {
          event: "export.progress_failed",
        });
      }
      if (!this.#signal.aborted) this.#nextBeat();
    }, beatEveryMs);
  }

  async run(): Promise<void> {
    const { viewersOf, incomingFolder, fileStore, query } = this.#helpers;
    const { subject, is_report: isReport, filename, worker } = this.#run;
    const format = formats[this.#run.format]!;
    const key = worker.replaceAll("-", "");
    const claims: Claims = {
      userId: this.#run.requested_by_id,
      readOnly: true,
      ...(this.#run.token_id !== null && { tokenId: this.#run.token_id }),
      ...(this.#run.token_organization_id !== null && { organizationId: this.#run.token_organization_id }),
      ...(this.#run.token_scopes !== null && { scopes: this.#run.token_scopes.split(",") }),
    };
    const source = await openExportSource(viewersOf(this.#run.organization_id), {
      id: this.#id,
      claims,
      archives: new EventArchives(fileStore, {
        warn: (_fields, message) => this.#helpers.logger.warn(message),
      }),
      isArchive: this.#run.format === "ZIP",
    });
    try {
      await query("select app_private.note_export($1, $2, $3, $4, $5)", [
        this.#id,
        worker,
        source.total,
        source.permissions,
        source.rights,
      ]);
      // The partial file of a dead worker is useless.
      const name = `export-${this.#id}.`;
      await removeLeftovers(incomingFolder, { name });
      this.#signal.throwIfAborted();
      const wrote = (rows: number) => (this.#rows += rows);
      const content = await format.write(source, { subject, isReport, filename, store: fileStore, wrote });
      const stop = () => content.destroy(this.#signal.reason as Error);
      this.#signal.addEventListener("abort", stop, { once: true });
      if (this.#signal.aborted) stop();
      const incoming = { folder: incomingFolder, name, limit: largest };
      await withIncoming(incoming, content, async ({ path, size, checksum }) => {
        await source.close();
        await query("select app_private.keep_export_file($1, $2, $3)", [this.#id, worker, key]);
        await fileStore.put(key, { path }, { size, type: format.type });
        const { rows } = await query<{ done: boolean }>(
          "select app_private.finish_export($1, $2, $3, $4, $5) as done",
          [this.#id, worker, this.#rows, size, checksum],
        );
        if (!rows[0]!.done) await fileStore.delete([key]);
      });
    } finally {
      await source.close();
    }
  }
}

export default task;
