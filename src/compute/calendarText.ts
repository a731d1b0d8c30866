/** A feed of appointments as iCalendar; computed in a thread, because the largest takes a tenth of a second and more. */
import ical, { ICalCalendarMethod, ICalEventStatus } from "ical-generator";

/** A calendar of appointments: plain data, so that it can be sent to a thread. */
export interface CalendarFeed {
  name: string;
  /** Host name of the service, for the ids of appointments. */
  host: string;
  appointments: readonly Appointment[];
}

/** Row of app_hidden.calendar_appointments; times are ISO 8601, or dates. */
export interface Appointment {
  id: string;
  version: number;
  status: string;
  type: string;
  title: string | null;
  person: string | null;
  project: string | null;
  starts_at: Date | string;
  ends_at: Date | string;
  time_zone: string;
  location: string | null;
  video_url: string | null;
  inserted_at: Date | string;
  updated_at: Date | string;
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
export function calendarText({ name, host, appointments }: CalendarFeed): string {
  // PERF: creating a formatter is slow, and most appointments of a feed are in the same time zone.
  const formats = new Map<string, Intl.DateTimeFormat>();
  const formatOf = (timeZone: string): Intl.DateTimeFormat => {
    const known = formats.get(timeZone);
    if (known) return known;
    const format = new Intl.DateTimeFormat("en-CA", { dateStyle: "medium", timeStyle: "short", timeZone });
    formats.set(timeZone, format);
    return format;
  };
  const calendar = ical({
    name,
    prodId: { company: "Plat", product: "Appointments", language: "EN" },
    method: ICalCalendarMethod.PUBLISH,
    ttl: 15 * 60,
  });
  for (const a of appointments) {
    const kind = a.type.charAt(0) + a.type.slice(1).toLowerCase().replaceAll("_", " ");
    const local = formatOf(a.time_zone).format(new Date(a.starts_at));
    calendar.createEvent({
      id: `${a.id}@${host}`,
      sequence: a.version - 1,
      stamp: new Date(a.updated_at),
      created: new Date(a.inserted_at),
      lastModified: new Date(a.updated_at),
      start: new Date(a.starts_at),
      end: new Date(a.ends_at),
      summary: [a.title ?? kind, a.person].filter(Boolean).join(" – "),
      description: [a.project, `${local} (${a.time_zone})`].filter(Boolean).join("\n"),
      location: a.location,
      url: a.video_url,
      status: statuses[a.status] ?? ICalEventStatus.CONFIRMED,
    });
  }
  return calendar.toString();
}
