/** When a cron expression of five fields fires, in a time zone. */
import { CronExpressionParser } from "cron-parser";

/** Why an expression is invalid, as a sentence; undefined if it is valid. */
export function scheduleFault(line: string): string | undefined {
  const fields = line.trim().split(/\s+/);
  // The library also accepts seconds, nicknames and random values.
  if (
    fields.length !== 5 ||
    fields.some((field) => !/^[A-Za-z0-9*/,\-#?]+$/.test(field) || /^H/i.test(field))
  )
    return 'a cron line has five fields: minute, hour, day of the month, month, day of the week, such as "0 9 * * 1-5".';
  try {
    nextRun(line, "UTC", new Date());
    return undefined;
  } catch (error) {
    const { message } = error as Error;
    return /invalid explicit day of month|loop limit|out of the time span/i.test(message)
      ? "this cron line never fires."
      : `this is no cron line: ${message}.`;
  }
}

/** The first time after `after`. A time skipped by a clock change fires when the clock resumes; a repeated one fires once. */
export function nextRun(line: string, timeZone: string, after: Date): Date {
  return CronExpressionParser.parse(line.trim(), { tz: timeZone, currentDate: after }).next().toDate();
}
