import type { LiveEvent } from "../../index.ts";
import { type Command, type Context, text } from "../command.ts";

/** Options that select events. */
export const eventOptions = {
  since: {
    type: "string",
    value: "SEQUENCE",
    description: "Begin behind this sequence; 0 for all that are kept. With new events if omitted.",
  },
  project: { type: "string", value: "SLUG", description: "Only events of this project, by id or slug." },
  subject: { type: "string", value: "ID", description: "Only events about this record." },
} as const;

/** The events that the options of a command select. */
export async function eventsOf(context: Context): Promise<AsyncGenerator<LiveEvent>> {
  const client = await context.connect();
  const after = text(context, "since");
  const projectId = text(context, "project");
  const subjectId = text(context, "subject");
  return client.events({
    organizationId: await context.organization(),
    signal: context.signal,
    ...(context.positionals.length > 0 && { names: context.positionals }),
    ...(after !== undefined && { after }),
    ...(projectId && { projectId }),
    ...(subjectId && { subjectId }),
  });
}

/** An event as one line: its sequence number, time, name and record. */
export function eventLine({ sequence, timestamp, type, subjectType, subjectId, changes }: LiveEvent): string {
  const fields = Object.entries(changes ?? {})
    .filter(([name]) => !["updatedAt", "version"].includes(name))
    .map(([name, [, now]]) => `${name}=${JSON.stringify(now)}`)
    .join(" ");
  return `${sequence.padStart(6)}  ${timestamp}  ${type.padEnd(28)}  ${subjectType} ${subjectId}${fields ? `  ${fields.slice(0, 200)}` : ""}`;
}

export const eventsTail: Command = {
  name: "events tail",
  summary: "Follow the events of an organization as they are committed",
  usage: "[NAME...]",
  details:
    "NAME is an event such as lead.created, or lead.*; all if omitted. The feed goes on through lost connections, with no event lost and none twice. Ctrl-C ends it. With --json, each line is an event as webhooks receive it.",
  options: {
    ...eventOptions,
    count: { type: "string", value: "NUMBER", description: "End after so many events." },
  },
  examples: ["plat events tail unit.* reservation.*", "plat events tail --since 0 --json > events.jsonl"],
  async run(context) {
    const { out } = context;
    let left = Number(text(context, "count") ?? Infinity);
    for await (const event of await eventsOf(context)) {
      if (out.json) out.line(JSON.stringify(event));
      else out.line(eventLine(event));
      left -= 1;
      if (left <= 0) return;
    }
  },
};
