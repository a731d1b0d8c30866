import type { AnyType } from "../schema/stackTypes.ts";
/**
 * How a record beside another one is read:
 * - a function that returns `setof` a table with `rows 1` gives one record or none, not a list. PERF: PostgreSQL puts the body of a function in the
 *   place of its call in FROM only where it returns a set; another one is executed for each row, at 50 µs and more.
 * - a foreign key such as (unit_id, project_id) is followed by `unit_id` alone, where that finds the record by its primary key: the constraint
 *   keeps the other columns equal. PERF: with a condition on both, the planner takes them for independent and combines two indexes.
 */
/// <reference types="postgraphile" />

declare global {
  namespace GraphileConfig {
    interface Plugins {
      JoinsPlugin: true;
    }
  }
}

/** The place of the column in a foreign key that finds the record by itself; undefined where all are needed. */
function decisiveColumn(constraint: AnyType): number | undefined {
  // Of views there are relations too, which no constraint keeps.
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
