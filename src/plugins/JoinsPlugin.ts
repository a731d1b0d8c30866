import type { AnyType } from "../schema/stackTypes.ts";
/**
 * How a related record is read:
 * - A function that `returns setof` a table with `rows 1` returns one record or null, not a list. PERF: PostgreSQL
 *   inlines a function in FROM only if it returns a set; any other function is executed for each row, which takes 50 µs
 *   or more.
 * - A foreign key such as (unit_id, project_id) is followed by `unit_id` alone if that is the primary key of the
 *   record; the constraint guarantees that the other columns are equal. PERF: with a condition on both columns, the
 *   planner assumes that they are independent and combines two indexes.
 */
/// <reference types="postgraphile" />

declare global {
  namespace GraphileConfig {
    interface Plugins {
      JoinsPlugin: true;
    }
  }
}

/** The index of the column of a foreign key that identifies the record; undefined if all columns are needed. */
function decisiveColumn(constraint: AnyType): number | undefined {
  // Relations of views have no constraint.
  if (constraint.contype !== "f" || constraint.conname.startsWith("FAKE_")) return undefined;
  const primaryKey = constraint
    .getForeignClass()
    ?.getConstraints()
    .find(({ contype }: Record<string, unknown>) => contype === "p");
  if (primaryKey?.conkey.length !== 1) return undefined;
  const at = constraint.confkey.indexOf(primaryKey.conkey[0]);
  // A foreign key with a null in it refers to nothing, whatever its other columns have.
  const others = constraint.getAttributes().filter((_: unknown, index: number) => index !== at);
  return at >= 0 && others.every(({ attnotnull }: Record<string, unknown>) => attnotnull) ? at : undefined;
}

export const JoinsPlugin: GraphileConfig.Plugin = {
  name: "JoinsPlugin",
  version: "1.0.0",
  gather: {
    hooks: {
      pgProcedures_functionResourceOptions(_info, { pgProc, functionResourceOptions }) {
        if (!pgProc.proretset || pgProc.prorows !== 1) return;
        functionResourceOptions.returnsSetof = false;
        delete functionResourceOptions.hasImplicitOrder;
      },
      pgRelations_relation(_info, { pgConstraint, relation }: AnyType) {
        const at = decisiveColumn(pgConstraint);
        if (at === undefined) return;
        relation.localAttributes = [relation.localAttributes[at]];
        relation.remoteAttributes = [relation.remoteAttributes[at]];
      },
    },
  },
};
