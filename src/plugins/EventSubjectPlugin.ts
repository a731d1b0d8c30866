/**
 * `Event.subject`: the record that the event is about, a union of all record types. Null where the record is deleted or
 * the viewer may not see it. A subject such as lead_source is the type LeadSource; that of a table tagged `@subject` is its tag's.
 */
import { get, lambda, object, type ExecutableStep } from "postgraphile/grafast";
import { recordTables, type AnyResource } from "./tables.ts";
import { camel } from "./codecs.ts";

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

/** The names of types by those of subjects, where they differ. */
function tagged(resources: Map<string, AnyResource>): Map<string, string> {
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
    hooks: {
      init: {
        after: ["PgCodecs"],
        callback(_, build) {
          build.registerUnionType(
            "EventSubject",
            {},
            () => {
              const resources = subjects(build);
              const names = tagged(resources);
              return {
                description: "A record that events are about.",
                types: () => [...resources.keys()].map((name) => build.getOutputTypeByName(name) as any),
                planType: ($specifier: any) => ({
                  $__typename: lambda(get($specifier, "type") as ExecutableStep, (subject) => {
                    const name = names.get(String(subject)) ?? typeNameOf(String(subject));
                    return resources.has(name) ? name : null;
                  }),
                  planForType: (type: any) =>
                    resources.get(type.name)!.get({ id: get($specifier, "id") as ExecutableStep }) as any,
                }),
              };
            },
            "EventSubjectPlugin",
          );
          return _;
        },
      },
      GraphQLObjectType_fields(fields, build, context) {
        if (context.Self.name !== "Event") return fields;
        return build.extend(
          fields,
          {
            subject: context.fieldWithHooks({ fieldName: "subject" } as any, () => ({
              description: "The record that changed; null when it is deleted or not the viewer's to see.",
              type: build.getTypeByName("EventSubject") as any,
              plan: ($event: any) =>
                object({ type: $event.get("subject_type"), id: $event.get("subject_id") }),
            })),
          },
          "EventSubjectPlugin",
        );
      },
    },
  },
};
