/** GET /calendars/<token>.ics: the appointments of whoever made the feed, as they see them. */
import { createHash } from "node:crypto";
import type { RequestHandler } from "express";
import ical, { ICalCalendarMethod, ICalEventStatus } from "ical-generator";
import type { Pool } from "pg";
import { pgSettings } from "../auth/claims.ts";
import { CodedError } from "../errors.ts";
import { sha256 } from "../integrations/integrations.ts";
import { requestState } from "./requestState.ts";

interface Appointment {
  id: string;
  version: number;
  status: string;
  type: string;
  title: string | null;
  person: string | null;
  project: string | null;
  starts_at: Date;
  ends_at: Date;
  time_zone: string;
  location: string | null;
  video_url: string | null;
  inserted_at: Date;
  updated_at: Date;
}

const statuses: Record<string, ICalEventStatus> = {
  REQUESTED: ICalEventStatus.TENTATIVE,
  CANCELLED: ICalEventStatus.CANCELLED,
  RESCHEDULED: ICalEventStatus.CANCELLED,
};

/**
 * The text of a calendar: equal for equal appointments. Times are instants in UTC, which every calendar shows in the reader's
 * zone; the description says the time at the place.
 */
export function calendarText(name: string, appointments: readonly Appointment[], host: string): string {
  const calendar = ical({
    name,
    prodId: { company: "Plat", product: "Appointments", language: "EN" },
    method: ICalCalendarMethod.PUBLISH,
    ttl: 15 * 60,
  });
  for (const a of appointments) {
    const kind = a.type.charAt(0) + a.type.slice(1).toLowerCase().replaceAll("_", " ");
    const local = new Intl.DateTimeFormat("en-CA", {
      dateStyle: "medium",
      timeStyle: "short",
      timeZone: a.time_zone,
    }).format(a.starts_at);
    calendar.createEvent({
      id: `${a.id}@${host}`,
      sequence: a.version - 1,
      stamp: a.updated_at,
      created: a.inserted_at,
      lastModified: a.updated_at,
      start: a.starts_at,
      end: a.ends_at,
      summary: [a.title ?? kind, a.person].filter(Boolean).join(" – "),
      description: [a.project, `${local} (${a.time_zone})`].filter(Boolean).join("\n"),
      location: a.location,
      url: a.video_url,
      status: statuses[a.status] ?? ICalEventStatus.CONFIRMED,
    });
  }
  return calendar.toString();
}

/** @param pool connections of plat_authenticator */
export function calendars(pool: Pool, baseUrl: string): RequestHandler<{ token: string }> {
  const host = new URL(baseUrl).hostname;
  return async (request, response) => {
    const { rows } = await pool.query<{ id: string; user_id: string; name: string }>(
      "select * from app_private.feed_of($1)",
      [sha256(request.params.token)],
    );
    const [feed] = rows;
    if (!feed) throw new CodedError("NOT_FOUND", "There is no such calendar, or not any more.");
    const appointments = await read(pool, feed.user_id, requestState(request).id);
    const text = calendarText(feed.name, appointments, host);
    const etag = `"${createHash("sha256").update(text).digest("base64url").slice(0, 32)}"`;
    await pool.query("select app_private.note_synced('USER', $1)", [feed.id]);
    response.setHeader("ETag", etag);
    response.setHeader("Cache-Control", "private, no-cache");
    response.setHeader("Referrer-Policy", "no-referrer");
    if (request.headers["if-none-match"]?.split(/\s*,\s*/).some((tag) => tag.replace(/^W\//, "") === etag))
      return void response.status(304).end();
    response.setHeader("Content-Disposition", 'inline; filename="appointments.ics"');
    response.type("text/calendar; charset=utf-8").send(text);
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
    // A connection in a broken transaction is not for the next request.
    client.release(failure);
  }
}
