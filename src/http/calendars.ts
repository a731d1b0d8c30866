/** GET /calendars/<token>.ics: the appointments that the owner of the feed can see. */
import { createHash } from "node:crypto";
import type { RequestHandler } from "express";
import type { Pool } from "pg";
import { pgSettings } from "../database/claims.ts";
import type { Compute } from "../compute/computePool.ts";
import { CodedError } from "../base/errors.ts";
import type { Appointment } from "../compute/calendarText.ts";
import { sha256 } from "../integrations/integrations.ts";
import { hasCurrent } from "./conditionalRequests.ts";
import { requestState } from "./requestState.ts";

/**
 * @param pool connections of plat_authenticator
 * @param compute renders the feed, accounted to its user
 */
export function calendars(
  pool: Pool,
  baseUrl: string,
  compute: Pick<Compute, "run">,
): RequestHandler<{ token: string }> {
  const host = new URL(baseUrl).hostname;
  return async (request, response) => {
    const { rows } = await pool.query<{ id: string; user_id: string; name: string }>(
      "select * from app_private.feed_of($1)",
      [sha256(request.params.token)],
    );
    const [feed] = rows;
    if (!feed) throw new CodedError("NOT_FOUND", "This calendar does not exist or no longer exists.");
    const appointments = await read(pool, feed.user_id, requestState(request).id);
    // Entity tag of the source data, so that an unchanged feed costs only this query.
    const calendar = { name: feed.name, host, appointments };
    const digest = createHash("sha256").update(JSON.stringify(calendar)).digest("base64url");
    const etag = `"${digest.slice(0, 32)}"`;
    await pool.query("select app_private.note_synced('USER', $1)", [feed.id]);
    response.setHeader("ETag", etag);
    response.setHeader("Cache-Control", "private, no-cache");
    response.setHeader("Referrer-Policy", "no-referrer");
    if (hasCurrent(request, etag)) return void response.status(304).end();
    const [computed] = await compute.run(feed.user_id, "calendar", null, [calendar]);
    if ("over" in computed!) throw new Error(computed.over);
    response.setHeader("Content-Disposition", 'inline; filename="appointments.ics"');
    response.type("text/calendar; charset=utf-8").send(computed!.value);
  };
}

async function read(pool: Pool, userId: string, requestId: string): Promise<Appointment[]> {
  const client = await pool.connect();
  let failure: Error | undefined;
  try {
    await client.query("begin read only");
    const settings = pgSettings({ userId, readOnly: false }, { requestId, channel: "INTEGRATION" });
    await client.query("select set_config(s.key, s.value, true) from json_each_text($1) s", [
      JSON.stringify(settings),
    ]);
    const { rows } = await client.query<Appointment>("select * from app_hidden.calendar_appointments()");
    await client.query("commit");
    return rows;
  } catch (error) {
    failure = error as Error;
    throw error;
  } finally {
    // A connection in a failed transaction must not be reused.
    client.release(failure);
  }
}
