/**
 * Sends what webhooks wait for. A commit notifies; the stream is fanned out, what is due is leased and sent, and the database
 * decides what follows from the answer. Any number of processes may do so at once; what one of them held when it died is due
 * again when its connection is gone and does not come back. Deliveries take no place of the job runner: a receiver that hangs costs a socket, not a job.
 */
import type { Pool } from "pg";
import { ComputeStopped, type Compute } from "../compute/pool.ts";
import type { Computed } from "../compute/tasks.ts";
import { openListener } from "../database/listener.ts";
import { isOutage } from "../database/outages.ts";
import { workPoolOf } from "../database/workConnections.ts";
import type { Logger } from "../base/log.ts";
import { coalesceCalls } from "../base/coalesceCalls.ts";
import { PublicAgent } from "../network/agent.ts";
import { postPublicly, type PostResult } from "../network/publicPost.ts";
import type { Mapping } from "../compute/mapping.ts";
import { SealFault, type Seal } from "../secrets/seal.ts";
import { inSpan } from "../tracing/spans.ts";
import { workContext } from "../base/workContext.ts";
import { openSecrets } from "./secrets.ts";
import { makeRecorder } from "./recordDeliveries.ts";
import { signedHeaders } from "./signature.ts";

export interface DispatcherOptions {
  /** That of plat_worker. */
  connectionString: string;
  /** The connections that the engines of a process share; its own where omitted. */
  pool?: Pick<Pool, "query" | "connect">;
  seal: Seal;
  /** Whether addresses may lead to this machine. */
  loopback: boolean;
  /** Applies the mappings of integrations. */
  compute: Compute;
  log: Logger;
  /** Told of each attempt: the status of the answer, undefined where there was none, and seconds. */
  delivered?: (status: number | undefined, seconds: number) => void;
  timeoutMs?: number;
  /** How often it looks without being called: for retries, and for calls that were missed. */
  lookEveryMs?: number;
}

export interface Dispatcher {
  /** Takes no further deliveries, waits for those on their way. */
  stop(): Promise<void>;
}

/** Deliveries on their way at a time, in one process. */
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
  /** What an integration makes of the body. */
  mapping: Mapping | null;
  organization_id: string;
  /** That of the event. */
  request_id: string | null;
}

/** Starts to send, once the database can be reached. */
export async function startDispatcher(options: DispatcherOptions): Promise<Dispatcher> {
  const { connectionString, seal, loopback, compute, log, timeoutMs = 10_000, lookEveryMs = 1000 } = options;
  const pool = workPoolOf(options.pool, {
    connectionString,
    max: 4,
    applicationName: "plat-webhooks",
    log,
  });
  const agent = new PublicAgent();
  const record = makeRecorder(pool, log);
  const underway = new Set<Promise<void>>();
  let stopping = false;

  /** What is posted, or why nothing is. */
  async function bodyOf({ mapping, body, organization_id }: Delivery): Promise<string | { failure: string }> {
    if (!mapping) return body;
    // In a queue of its own: what else the organization computes does not hold its deliveries.
    const [text] = await compute.runTexts(`deliveries of ${organization_id}`, "mapping", mapping, [body]);
    const result = JSON.parse(text!) as Computed<object>;
    if ("over" in result) return { failure: result.over };
    const mapped = JSON.stringify(result.value);
    return Buffer.byteLength(mapped) > bodyLimit
      ? { failure: "The mapped event is larger than 256 KB." }
      : mapped;
  }

  /** @throws SealFault where the webhook has a secret that is not its own */
  async function send(delivery: Delivery): Promise<PostResult> {
    let secrets: string[];
    try {
      secrets = openSecrets(seal, delivery.webhook_id, delivery.sealed, delivery.previous_sealed);
    } catch (error) {
      if (error instanceof SealFault && error.reason === "PLACE") throw error;
      log.error(
        { event: "secret.unreadable", err: error },
        "The secret of a webhook cannot be opened; check SECRET_KEYS.",
      );
      return { answer: undefined, failure: "The service cannot open the secret.", durationMs: 0 };
    }
    const body = await bodyOf(delivery);
    if (typeof body !== "string") return { answer: undefined, failure: body.failure, durationMs: 0 };
    return postPublicly(delivery.url, {
      headers: {
        "content-type": "application/json",
        "user-agent": "Plat-Webhooks/1",
        ...signedHeaders(delivery.message_id, body, secrets),
      },
      body,
      timeoutMs,
      answerLimit,
      loopback,
      agent,
    });
  }

  async function deliver(delivery: Delivery): Promise<void> {
    let result: PostResult;
    try {
      result = await send(delivery);
    } catch (error) {
      if (!(error instanceof SealFault)) throw error;
      await pool.query("select app_private.refuse_webhook_secret($1, $2)", [
        delivery.delivery_id,
        delivery.attempt,
      ]);
      return;
    }
    options.delivered?.(result.answer?.status, result.durationMs / 1000);
    await record(delivery, result);
  }

  const claim = async (): Promise<number> => {
    const room = capacity - underway.size;
    const current = line.current();
    // Without the line, what it claims would be taken for that of a dead one.
    if (stopping || room === 0 || !current) return 0;
    const { rows } = await pool.query<Delivery>(
      "select * from app_private.claim_webhook_deliveries($1, make_interval(secs => $2), $3)",
      [room, timeoutMs / 1000 + 20, current.id],
    );
    for (const delivery of rows) {
      const release = current.hold();
      const context = { requestId: delivery.request_id ?? undefined, operation: "webhook delivery" };
      const attributes = { "plat.webhook": delivery.webhook_id, "plat.attempt": delivery.attempt };
      const sending = workContext
        .run(context, () =>
          inSpan({ name: "webhook delivery", kind: "consumer", attributes }, () => deliver(delivery)),
        )
        // What could not be recorded is sent again when the lease is over.
        .catch((error: unknown) => {
          if (!(error instanceof ComputeStopped))
            log.error(
              { event: "webhook.delivery_failed", err: error },
              "A webhook delivery failed unexpectedly; retrying.",
            );
        })
        .finally(() => {
          release();
          underway.delete(sending);
          sender.call();
        });
      underway.add(sending);
    }
    return rows.length;
  };

  const freeDead = async (): Promise<void> => {
    await pool.query("select app_private.free_webhook_deliveries()");
  };

  const fanOut = async (): Promise<boolean> => {
    if (stopping) return false;
    const { rows } = await pool.query<{ more: boolean }>("select app_private.fan_out_webhooks($1) as more", [
      batch,
    ]);
    return rows[0]!.more;
  };

  const report = (error: unknown) => {
    if (isOutage(error)) line.renew();
    if (!stopping)
      log.warn({ event: "webhook.dispatch_failed", err: error }, "Webhook dispatch failed; retrying.");
  };
  // Apart from each other, so that a long way behind keeps nobody from what is made already.
  const sender = coalesceCalls(async () => {
    while ((await claim()) > 0);
  }, report);
  const fanner = coalesceCalls(async () => {
    for (let more = true; more;) {
      more = await fanOut();
      sender.call();
    }
  }, report);

  const keeper = coalesceCalls(async () => {
    await freeDead();
    sender.call();
  }, report);

  const line = await openListener({
    connectionString,
    applicationName: "plat-webhooks",
    log,
    listen: { channel: "plat_webhooks", called: fanner.call },
  }).catch(async (error: unknown) => {
    await pool.end();
    throw error;
  });
  line.keep(() => {
    fanner.call();
    keeper.call();
  }, lookEveryMs);
  return {
    async stop() {
      stopping = true;
      await line.rest();
      await Promise.all([fanner.idle(), keeper.idle(), sender.idle()]);
      await Promise.all(underway);
      await sender.idle();
      await line.end();
      await pool.end();
      agent.destroy();
    },
  };
}
