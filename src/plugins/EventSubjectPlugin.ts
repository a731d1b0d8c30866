/**
 * `Event.subject`: the record that the event is about, a union of all record types. Null if the record is deleted or
 * the viewer may not see it. A subject such as lead_source has the type LeadSource, unless a table has the tag
 * `@subject`.
 */
import { lambda, type ExecutableStep } from "postgraphile/grafast";
import { camel } from "../schema/codecNames.ts";
import { recordUnion } from "../schema/recordUnion.ts";
import { recordTables, type AnyResource } from "../schema/recordTables.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      EventSubjectPlugin: true;
    }
  }
}

function subjects(build: GraphileBuild.Build): Map<string, AnyResource> {
  return new Map(
    recordTables(build)
      .filter((resource) => resource.codec.attributes.version)
      .map((resource) => [build.inflection.tableType(resource.codec), resource]),
  );
}

/** Type names by subject, if they differ. */
function tagged(resources: ReadonlyMap<string, AnyResource>): Map<string, string> {
  return new Map(
    [...resources].flatMap(([name, { codec }]) => {
      const subject = codec.extensions?.tags?.subject;
      return typeof subject === "string" ? [[subject, name] as const] : [];
    }),
  );
}

const typeNameOf = (subject: string) => {
  const name = camel(subject);
  return name[0]!.toUpperCase() + name.slice(1);
};

export const EventSubjectPlugin: GraphileConfig.Plugin = {
  name: "EventSubjectPlugin",
  version: "1.0.0",
  schema: {
    hooks: recordUnion("EventSubjectPlugin", {
      name: "EventSubject",
      description: "A record of a type that has events.",
      field: {
        of: "Event",
        name: "subject",
        description:
          "The record that changed, as it is now; null if it was deleted or the viewer may not see it.",
      },
      tables: subjects,
      record($event, tables) {
        const names = tagged(tables);
        const type = lambda($event.get("subject_type") as ExecutableStep, (subject) => {
          const name = names.get(String(subject)) ?? typeNameOf(String(subject));
          return tables.has(name) ? name : null;
        });
        return { type, id: $event.get("subject_id") };
      },
    }),
  },
};
