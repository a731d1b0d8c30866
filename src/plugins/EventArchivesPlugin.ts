/**
 * `Event.data` and `Event.changes` of archived events, whose rows are empty: from the archive, with what the viewer may
 * read of them.
 */
import { lambda, type ExecutableStep } from "postgraphile/grafast";
import type { EventContent } from "../archives/index.ts";
import { ArchivedContentStep } from "../schema/archivedContentStep.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      EventArchivesPlugin: true;
    }
  }
}

const contents: readonly string[] = ["data", "changes"] satisfies (keyof EventContent)[];

export const EventArchivesPlugin: GraphileConfig.Plugin = {
  name: "EventArchivesPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      GraphQLObjectType_fields_field: {
        after: ["default"],
        callback(field, _build, { Self, scope: { fieldName } }) {
          if (Self.name !== "Event" || !contents.includes(fieldName)) return field;
          const name = fieldName as keyof EventContent;
          const { plan = ($event) => $event.get(fieldName) } = field;
          return {
            ...field,
            plan: (...values: Parameters<NonNullable<typeof plan>>) => {
              const [$event] = values;
              const $content = new ArchivedContentStep($event.get("id"), $event.get("archived_at"));
              return lambda([plan(...values) as ExecutableStep, $content], ([stored, content]) =>
                content ? (content as EventContent)[name] : stored,
              );
            },
          };
        },
      },
    },
  },
};
