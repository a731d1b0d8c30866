/**
 * Delivers events to webhooks. It is notified of commits, creates deliveries for new events, leases those that are due
 * and sends them; the database decides what follows from the response. Any number of processes can run it. If a process
 * dies, its leases become due again once its connection is gone and is not reopened. Deliveries do not use the job
 * runner: a receiver that does not answer occupies a socket, not a job slot.
 */
import { ComputeStopped, type Compute } from "../compute/computePool.ts";
import type { Computed } from "../compute/tasks.ts";
import type { Line } from "../database/listener.ts";
import { Engine, type EngineConnections, type Loop } from "../engines/engine.ts";
import { organizationParty } from "../admission/party.ts";
import { PublicAgent } from "../network/agent.ts";
import { postPublicly, type PostResult } from "../network/publicPost.ts";
import { ArchiveUnreadable, type ArchivedEvent, type EventArchives } from "../archives/index.ts";
import type { Mapping } from "../compute/mapping.ts";
import { SealFault, type Seal } from "../secrets/seal.ts";
import { inSpan } from "../tracing/spans.ts";
import { workContext } from "../base/workContext.ts";
import { openSecrets } from "./secrets.ts";
import { makeRecorder, type RecordAttempt } from "./recordDeliveries.ts";
import { signedHeaders } from "./signature.ts";

export interface DispatcherOptions extends EngineConnections {
  seal: Seal;
  /** Whether URLs may point to this machine. */
  loopback: boolean;
  /** Applies the mappings of integrations. */
  compute: Compute;
  /** Reads the content of archived events, for redelivery; without it, deliveries of these fail. */
  eventArchives?: EventArchives;
  /** Called after each attempt with the response status, undefined if there was none, and the duration in seconds. */
  delivered?: (status: number | undefined, seconds: number) => void;
  timeoutMs?: number;
  /** Poll interval, for retries and missed notifications. */
  lookEveryMs?: number;
}

export interface Dispatcher {
  /** Stops taking deliveries and waits for those in flight. */
  stop(): Promise<void>;
}

/** Maximum number of deliveries in flight per process. */
const capacity = 256;
/** Events per webhook and transaction. */
const batch = 500;
const answerLimit = 64 * 1024;
const bodyLimit = 256 * 1024;

interface Delivery {
  delivery_id: string;
  webhook_id: string;
  attempt: number;
  message_id: string;
  url: string;
  body: string;
  sealed: string;
  previous_sealed: string | null;
  /** Mapping of an integration that is applied to the body. */
  mapping: Mapping | null;
  organization_id: string;
  /** Request id of the event. */
  request_id: string | null;
  /** Whether the content of the event is in the archive; then the body lacks it. */
  is_archived: boolean;
}

/** Starts once the database is reachable. */
export async function startDispatcher(options: DispatcherOptions): Promise<Dispatcher> {
  const dispatcher = new WebhookDispatcher(options);
  await dispatcher.start();
  return dispatcher;
}

class WebhookDispatcher implements Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #timeoutMs: number;
  readonly #engine: Engine;
  readonly #record: RecordAttempt;
  readonly #agent = new PublicAgent();
  /** Deliveries in flight. */
  #sending = 0;
  // Run concurrently, so that a long backlog does not delay deliveries that already exist.
  readonly #fanner: Loop;
  readonly #keeper: Loop;
  readonly #sender: Loop;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#timeoutMs = options.timeoutMs ?? 10_000;
    this.#engine = new Engine({
      ...options,
      name: "plat-webhooks",
      connections: 3,
      failure: { event: "webhook.dispatch_failed", message: "Webhook dispatch failed; retrying." },
    });
    this.#record = makeRecorder(this.#engine.pool, options.log);
    this.#sender = this.#engine.loop(() => this.#sendDue());
    this.#fanner = this.#engine.loop(() => this.#fanOut());
    this.#keeper = this.#engine.loop(() => this.#freeDead());
  }

  async start(): Promise<void> {
    await this.#engine.start({
      listen: { channel: "plat_webhooks", called: this.#fanner.call },
      poll: () => {
        this.#fanner.call();
        this.#keeper.call();
      },
      everyMs: this.#options.lookEveryMs ?? 1000,
    });
  }

  async stop(): Promise<void> {
    await this.#engine.stop();
    this.#agent.destroy();
  }

  /** Creates deliveries of events. */
  async #fanOut(): Promise<boolean> {
    let rounds = 0;
    for (let more = true; more && !this.#engine.isStopping; rounds += 1) {
      const { rows } = await this.#engine.pool.query<{ more: boolean }>(
        "select app_private.fan_out_webhooks($1) as more",
        [batch],
      );
      more = rows[0]!.more;
      this.#sender.call();
    }
    return rounds > 1;
  }

  async #freeDead(): Promise<boolean> {
    const { rows } = await this.#engine.pool.query<{ amount: number }>(
      "select app_private.free_webhook_deliveries() as amount",
    );
    this.#sender.call();
    return rows[0]!.amount > 0;
  }

  async #sendDue(): Promise<boolean> {
    let claims = 0;
    while ((await this.#claim()) > 0) claims += 1;
    return claims > 0;
  }

  /** Claims due deliveries and starts sending them; returns their number. */
  async #claim(): Promise<number> {
    const room = capacity - this.#sending;
    const holder = this.#engine.holder();
    if (room === 0 || !holder) return 0;
    const { rows } = await this.#engine.pool.query<Delivery>(
      "select * from app_private.claim_webhook_deliveries($1, make_interval(secs => $2), $3)",
      [room, this.#timeoutMs / 1000 + 20, holder.id],
    );
    for (const delivery of rows) this.#begin(delivery, holder);
    return rows.length;
  }

  #begin(delivery: Delivery, holder: Line): void {
    const context = { requestId: delivery.request_id ?? undefined, operation: "webhook delivery" };
    const attributes = { "plat.webhook": delivery.webhook_id, "plat.attempt": delivery.attempt };
    this.#sending += 1;
    this.#engine.lease(holder, () =>
      workContext
        .run(context, () =>
          inSpan({ name: "webhook delivery", kind: "consumer", attributes }, () => this.#deliver(delivery)),
        )
        // A delivery whose outcome could not be recorded is sent again when the lease expires.
        .catch((error: unknown) => {
          if (!(error instanceof ComputeStopped))
            this.#options.log.error(
              { event: "webhook.delivery_failed", err: error },
              "A webhook delivery failed unexpectedly; retrying.",
            );
        })
        .finally(() => {
          this.#sending -= 1;
          this.#sender.call();
        }),
    );
  }

  async #deliver(delivery: Delivery): Promise<void> {
    let result: PostResult;
    try {
      result = await this.#send(delivery);
    } catch (error) {
      if (!(error instanceof SealFault)) throw error;
      await this.#engine.pool.query("select app_private.refuse_webhook_secret($1, $2)", [
        delivery.delivery_id,
        delivery.attempt,
      ]);
      return;
    }
    this.#options.delivered?.(result.answer?.status, result.durationMs / 1000);
    await this.#record(delivery, result);
  }

  /** @throws SealFault if the webhook has a secret that is not its own */
  async #send(delivery: Delivery): Promise<PostResult> {
    const { seal, log, loopback } = this.#options;
    let secrets: string[];
    try {
      secrets = openSecrets(seal, delivery.webhook_id, delivery.sealed, delivery.previous_sealed);
    } catch (error) {
      if (error instanceof SealFault && error.reason === "PLACE") throw error;
      log.error(
        { event: "secret.unreadable", err: error },
        "The secret of a webhook cannot be decrypted; check SECRET_KEYS.",
      );
      return { answer: undefined, failure: "The service cannot open the secret.", durationMs: 0 };
    }
    const body = await this.#bodyOf(delivery);
    if (typeof body !== "string") return { answer: undefined, failure: body.failure, durationMs: 0 };
    return postPublicly(delivery.url, {
      headers: {
        "content-type": "application/json",
        "user-agent": "Plat-Webhooks/1",
        ...signedHeaders(delivery.message_id, body, secrets),
      },
      body,
      timeoutMs: this.#timeoutMs,
      answerLimit,
      loopback,
      agent: this.#agent,
    });
  }

  /** The request to send, or why none is sent. */
  async #bodyOf(delivery: Delivery): Promise<string | { failure: string }> {
    const { mapping, organization_id } = delivery;
    const body = delivery.is_archived ? await this.#archivedBody(delivery) : delivery.body;
    if (!mapping || typeof body !== "string") return body;
    // Uses a separate queue, so that other computations of the organization do not delay its deliveries.
    const [text] = await this.#options.compute.runTexts(
      `deliveries of ${organization_id}`,
      "mapping",
      mapping,
      [body],
    );
    const result = JSON.parse(text!) as Computed<object>;
    if ("over" in result) return { failure: result.over };
    const mapped = JSON.stringify(result.value);
    return Buffer.byteLength(mapped) > bodyLimit
      ? { failure: "The mapped event is larger than 256 KB." }
      : mapped;
  }

  /** The message of an archived event, with what the principal of the webhook may read of it. */
  async #archivedBody({ delivery_id, organization_id }: Delivery): Promise<string | { failure: string }> {
    const { pool } = this.#engine;
    const { eventArchives } = this.#options;
    if (!eventArchives) return { failure: "This process cannot read the archive of events." };
    let body: string | null = null;
    const contents = await eventArchives.contents([delivery_id], {
      party: organizationParty(organization_id),
      find: async () => {
        const { rows } = await pool.query<ArchivedEvent>("select * from app_private.archived_delivery($1)", [
          delivery_id,
        ]);
        return rows;
      },
      read: async ([archived]) => {
        const { rows } = await pool.query<{ body: string | null }>(
          "select app_private.archived_delivery_body($1, $2, $3) as body",
          [delivery_id, archived!.checksum, archived!.line],
        );
        ({ body } = rows[0]!);
        return body === null ? [] : [{ event_id: archived!.event_id, data: null, changes: null }];
      },
    });
    if (body !== null) return body;
    const isUnreadable = [...contents.values()].some((content) => content instanceof ArchiveUnreadable);
    return {
      failure: isUnreadable
        ? "The archived content of the event could not be read."
        : "The archived content of the event is no longer available to the webhook.",
    };
  }
}
