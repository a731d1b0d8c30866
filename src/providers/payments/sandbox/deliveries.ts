/** Delivers events to the service, signed like those of the real processor, until they are accepted; and completes refunds. */
import { request as overHttp } from "node:http";
import { request as overHttps } from "node:https";
import type { WorkPool } from "../../../database/workConnections.ts";
import { backoff } from "../../../base/backoff.ts";
import type { Logger } from "../../../base/log.ts";
import { stripePackage } from "../stripePackage.ts";
import { settleRefund, publicFields } from "./sandboxPayments.ts";
import { withStore, type SandboxRecord } from "./sandboxStore.ts";

/** The target of deliveries, and their signing secret. */
export interface Endpoint {
  url: string;
  secret: string;
}

const most = 20;
const leaseSeconds = 30;
/** Three days, as at the real processor. */
const giveUpAfter = 40;

function post(url: string, body: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    // The service itself, at an address of this machine: its certificate is self-signed.
    const outgoing = url.startsWith("https:")
      ? overHttps(url, { method: "POST", headers, rejectUnauthorized: false, timeout: 10_000, agent: false })
      : overHttp(url, { method: "POST", headers, timeout: 10_000, agent: false });
    outgoing.on("response", (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
      response.on("error", reject);
    });
    outgoing.on("timeout", () => outgoing.destroy(new Error("No answer.")));
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** Delivers due events, and settles refunds. */
export class Deliveries {
  readonly #pool: WorkPool;
  readonly #log: Pick<Logger, "debug">;
  readonly #pauses = backoff();
  #endpoint: Endpoint | undefined;
  #running: Promise<void> | undefined;
  #again = false;
  #isStopping = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(pool: WorkPool, endpoint: Endpoint | undefined, log: Pick<Logger, "debug">) {
    this.#pool = pool;
    this.#endpoint = endpoint;
    this.#log = log;
  }

  /** Sets the target of events. */
  deliverTo(endpoint: Endpoint): void {
    this.#endpoint = endpoint;
    this.kick().catch(() => {});
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  /** Processes what is due, one run at a time. */
  kick(): Promise<void> {
    if (this.#isStopping) return Promise.resolve();
    if (this.#running) {
      this.#again = true;
      return this.#running;
    }
    this.#running = this.#processDue()
      .catch((error: unknown) => {
        this.#log.debug(
          { event: "sandbox.failed", err: error },
          "The payment sandbox could not read its events; retrying.",
        );
        if (!this.#isStopping) this.#kickIn(this.#pauses.pause());
      })
      .finally(() => {
        this.#running = undefined;
        if (this.#again) return this.kick();
      });
    return this.#running;
  }

  async #deliver(event: SandboxRecord, { url, secret }: Endpoint): Promise<void> {
    const body = JSON.stringify(publicFields(event));
    const signer = new (stripePackage())("sk_test_sandbox").webhooks;
    const header = signer.generateTestHeaderString({ payload: body, secret });
    let taken = false;
    try {
      const status = await post(url, body, {
        "content-type": "application/json; charset=utf-8",
        "stripe-signature": header,
      });
      taken = status >= 200 && status < 300;
    } catch (error) {
      this.#log.debug(
        { event: "sandbox.failed", err: error },
        "The payment sandbox did not deliver an event; retrying.",
      );
    }
    const tries = Number(event.tries) + 1;
    await this.#pool.query(
      `update app_private.sandbox_objects set data = case when $2 then (data - 'due') || '{"pending_webhooks": 0}'
         else data || jsonb_build_object('tries', $3::int, 'due', extract(epoch from now()) + least(3600, power(2, $3::int))) end where id = $1`,
      [event.id, taken || tries > giveUpAfter, tries],
    );
  }

  async #round(): Promise<number> {
    if (this.#isStopping) return 0;
    // Leased, so that processes do not do the same concurrently, and the work of a dead one becomes due again.
    const { rows } = await this.#pool.query<{ data: SandboxRecord }>(
      `update app_private.sandbox_objects o set data = o.data || jsonb_build_object('due', extract(epoch from now()) + $1::int)
       from (select id, data from app_private.sandbox_objects
         where data ? 'due' and (data ->> 'due')::numeric <= extract(epoch from now()) and ($2 or kind <> 'event')
         order by (data ->> 'due')::numeric, position limit $3 for update skip locked) d
       where o.id = d.id returning d.data`,
      [leaseSeconds, this.#endpoint !== undefined, most],
    );
    for (const { data } of rows)
      if (data.object === "refund") await withStore(this.#pool, (store) => settleRefund(store, data.id));
    await Promise.all(
      rows
        .filter(({ data }) => data.object === "event")
        .map(({ data }) => this.#deliver(data, this.#endpoint!)),
    );
    return rows.length;
  }

  async #processDue(): Promise<void> {
    clearTimeout(this.#timer);
    do {
      this.#again = false;
      while ((await this.#round()) > 0);
    } while (this.#again);
    if (this.#isStopping) return;
    const { rows } = await this.#pool.query<{ wait: number | null }>(
      `select min((data ->> 'due')::numeric) - extract(epoch from now()) as wait from app_private.sandbox_objects
       where data ? 'due' and ($1 or kind <> 'event')`,
      [this.#endpoint !== undefined],
    );
    const wait = rows[0]!.wait;
    this.#pauses.reset();
    if (wait !== null) this.#kickIn(Math.min(60_000, Math.max(50, Number(wait) * 1000)));
  }

  #kickIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.kick().catch(() => {}), ms);
  }
}
