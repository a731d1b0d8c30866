/** A field that returns records of several types, and their union. */
import { get, object, type ExecutableStep } from "postgraphile/grafast";
import type { AnyResource } from "./recordTables.ts";
import type { AnyStep, AnyType } from "./stackTypes.ts";

interface RecordUnion {
  /** The name and description of the union. */
  name: string;
  description: string;
  /** The field `name` of the type `of`. */
  field: { of: string; name: string; description: string };
  /** The tables of the records, by type name; called when the tables are known. */
  tables(build: GraphileBuild.Build): ReadonlyMap<string, AnyResource>;
  /** From a row of the type `of`: the type name of the record, null if there is none, and its id. */
  record(
    $row: AnyStep,
    tables: ReadonlyMap<string, AnyResource>,
  ): { type: ExecutableStep; id: ExecutableStep };
}

/** The schema hooks that create both. A deleted record, or one that the viewer cannot see, is null. */
export function recordUnion(plugin: string, { name, description, field, tables, record }: RecordUnion) {
  return {
    init: {
      after: ["PgCodecs"],
      callback(_, build) {
        build.registerUnionType(
          name,
          {},
          () => {
            const resources = tables(build);
            return {
              description,
              types: () => [...resources.keys()].map((type) => build.getOutputTypeByName(type) as AnyType),
              planType: ($record) => ({
                $__typename: get($record, "type") as ExecutableStep,
                planForType: (type) =>
                  resources.get(type.name)!.get({ id: get($record, "id") as ExecutableStep }),
              }),
            };
          },
          plugin,
        );
        return _;
      },
    },
    GraphQLObjectType_fields(fields, build, { Self, fieldWithHooks }) {
      if (Self.name !== field.of) return fields;
      return build.extend(
        fields,
        {
          [field.name]: fieldWithHooks({ fieldName: field.name }, () => {
            const resources = tables(build);
            return {
              description: field.description,
              type: build.getTypeByName(name) as AnyType,
              plan: ($row) => object({ ...record($row, resources) }),
            };
          }),
        },
        plugin,
      );
    },
  } satisfies NonNullable<GraphileConfig.Plugin["schema"]>["hooks"];
}
