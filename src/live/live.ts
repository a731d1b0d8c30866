/** Entry point of live events: who may open streams, limits, and tickets that replace tokens in URLs. */
import { createHash, randomBytes } from "node:crypto";
import type { Pool } from "pg";
import type { Authenticator, Bearer } from "../auth/authenticate.ts";
import { CodedError } from "../base/errors.ts";
import type { Subscriber } from "./feed.ts";
import { createHub, type Hub, type HubOptions } from "./hub.ts";
import type { LiveNumbers } from "./liveNumbers.ts";
import { StreamCounts, type StreamOwner } from "./streamLimits.ts";
import type { StreamLimits } from "../base/providerOptions.ts";

export interface LiveOptions extends Omit<HubOptions, "authenticator"> {
  authenticator: Authenticator;
  /** Connections of plat_authenticator. */
  pool: Pick<Pool, "query">;
  limits: StreamLimits;
}

/** A stream to fill with events. */
export interface FilledStream extends Subscriber {
  /** Called when it accepts data again. */
  onReady: () => void;
  /** Called about once a second; returns false if the reader is too slow. */
  tick(now: number, readWithinMs?: number): boolean;
}

export interface Live extends Pick<Hub, "begin" | "drain" | "stop"> {
  readonly numbers: LiveNumbers;
  /** The viewer of an Authorization header; undefined without one. @throws CodedError UNAUTHENTICATED */
  bearer(header: string | undefined, ip: string | undefined): Promise<Bearer | undefined>;
  /** A ticket for a token, with its expiry. */
  issue(bearer: Bearer): Promise<{ ticket: string; expiresAt: string }>;
  /** Redeems a ticket, which is valid once. @throws CodedError UNAUTHENTICATED */
  redeem(ticket: string, ip: string | undefined): Promise<Bearer>;
  /** Reserves a place among the streams. @throws CodedError RATE_LIMITED, UNAVAILABLE */
  take(owner: StreamOwner): () => void;
  /** Fills a stream until the returned function is called. @throws CodedError UNAVAILABLE */
  open(stream: FilledStream, bearer: Bearer, organizationId: string): Promise<() => void>;
}

const TICK_MS = 1_000;
const ticketForm = /^plat_ticket_[A-Za-z0-9_-]{43}$/;
const sha256 = (text: string) => createHash("sha256").update(text).digest();

/** Row of app_private.redeem_stream_ticket. */
interface TicketRow {
  user_id: string;
  session_id: string | null;
  token_sha256: Buffer | null;
  token_expires_at: Date | null;
}

/** Creates the event streams of a process, within the limits of `limits`. */
export function createLive({ authenticator, pool, limits, ...options }: LiveOptions): Live {
  const hub = createHub({ ...options, authenticator });
  const counts = new StreamCounts(limits);
  const streams = new Set<FilledStream>();
  let ticking: NodeJS.Timeout | undefined;

  const tick = () => {
    const now = performance.now();
    for (const stream of [...streams])
      if (!stream.tick(now, limits.readWithinMs))
        stream.end(
          new CodedError(
            "LIMIT_EXCEEDED",
            "The stream was read too slowly; connect again to continue after the last event that was read.",
          ),
        );
  };

  const checked = (bearer: Bearer): Bearer => {
    // Such a token cannot be checked again.
    if (bearer.facts.sessionId === null && bearer.facts.tokenSha256 === null)
      throw new CodedError("UNAUTHENTICATED", "This token is too old for event streams; sign in again.");
    return bearer;
  };

  return {
    begin: (...stream) => hub.begin(...stream),
    drain: () => hub.drain(),
    get numbers() {
      return hub.numbers;
    },
    async bearer(header, ip) {
      const bearer = await authenticator.bearer(header, ip);
      return bearer && checked(bearer);
    },
    async issue({ facts: { userId, sessionId, tokenSha256 }, expiresAt }) {
      const ticket = `plat_ticket_${randomBytes(32).toString("base64url")}`;
      const { rows } = await pool.query<{ expires_at: Date }>({
        name: "issue_stream_ticket",
        text: "select app_private.issue_stream_ticket($1, $2, $3, $4, to_timestamp($5)) as expires_at",
        values: [sha256(ticket), userId, tokenSha256 ? null : sessionId, tokenSha256, expiresAt ?? null],
      });
      return { ticket, expiresAt: rows[0]!.expires_at.toISOString() };
    },
    async redeem(ticket, ip) {
      const { rows } = ticketForm.test(ticket)
        ? await pool.query<TicketRow>({
            name: "redeem_stream_ticket",
            text: "select * from app_private.redeem_stream_ticket($1)",
            values: [sha256(ticket)],
          })
        : { rows: [] };
      const [row] = rows;
      if (!row)
        throw new CodedError(
          "UNAUTHENTICATED",
          "The ticket is unknown, used or expired; request another one.",
        );
      const facts = { userId: row.user_id, sessionId: row.session_id, tokenSha256: row.token_sha256 };
      const expiresAt = row.token_expires_at ? row.token_expires_at.getTime() / 1000 : undefined;
      return { claims: await authenticator.again(facts, ip), facts, expiresAt };
    },
    take: (owner) => counts.take(owner),
    async open(stream, bearer, organizationId) {
      const subscription = await hub.add(stream, bearer, organizationId);
      stream.onReady = subscription.resume;
      streams.add(stream);
      ticking ??= setInterval(tick, TICK_MS).unref();
      return () => {
        subscription.delete();
        streams.delete(stream);
        if (streams.size > 0) return;
        clearInterval(ticking);
        ticking = undefined;
      };
    },
    async stop() {
      clearInterval(ticking);
      await hub.stop();
    },
  };
}
