/**
 * Tables with columns tagged `@masked`, which the roles of the API may not read:
 * - Rows come from the view app_hidden.masked_<table>, in which masked columns contain what the viewer may read.
 * - The function `<table>_<column>` defines how the column is exposed, but is not called: the column of the view is
 *   read.
 * - Other functions of a row receive null in masked columns, except in those that their comment lists in `@reads column
 *   …`. PERF: PostgreSQL does not inline a function whose argument is a row with masks.
 */
import { sql, type SQL } from "postgraphile/pg-sql2";
import { tagTexts } from "../schema/codecNames.ts";
import type { AnyType } from "../schema/stackTypes.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      MaskedTablesPlugin: true;
    }
  }
}

interface MaskedTable {
  name: string;
  columns: { name: string; type: SQL; masked: boolean }[];
}

type PgClass = AnyType;

function maskedTable(pgClass: PgClass): MaskedTable | undefined {
  if (!pgClass || pgClass.relkind === "v" || pgClass.getNamespace().nspname !== "app_public")
    return undefined;
  const columns = pgClass
    .getAttributes()
    .filter((attribute: AnyType) => attribute.attnum > 0 && !attribute.attisdropped)
    .map((attribute: AnyType) => ({
      name: attribute.attname,
      type: sql.identifier(attribute.getType().getNamespace().nspname, attribute.getType().typname),
      masked: attribute.getTags().masked !== undefined,
    }));
  return columns.some((column: { masked: boolean }) => column.masked)
    ? { name: pgClass.relname, columns }
    : undefined;
}

/** The row passed to a function that reads the masked columns `reads`. */
function rowWithout({ name, columns }: MaskedTable, row: SQL, reads: string[]): SQL {
  const values = columns.map((column) =>
    column.masked && !reads.includes(column.name)
      ? sql`null::${column.type}`
      : sql`(${row}).${sql.identifier(column.name)}`,
  );
  return sql`row(${sql.join(values, ", ")})::${sql.identifier("app_public", name)}`;
}

export const MaskedTablesPlugin: GraphileConfig.Plugin = {
  name: "MaskedTablesPlugin",
  version: "1.0.0",
  gather: {
    hooks: {
      pgTables_PgResourceOptions(_info, { pgClass, resourceOptions }) {
        const table = maskedTable(pgClass);
        if (!table) return;
        const source = ["app_hidden", `masked_${table.name}`] as const;
        resourceOptions.from = sql.identifier(...source);
        resourceOptions.extensions = Object.assign(Object.create(null), resourceOptions.extensions, {
          readFrom: source,
        });
      },
      pgProcedures_PgResourceOptions(_info, { pgProc, resourceOptions }: AnyType) {
        const [first] = pgProc.getArguments();
        const table = maskedTable(first?.type.getClass());
        if (!table || first.isIn === false) return;
        const { from } = resourceOptions;
        const column = table.columns.find(
          ({ name, masked }) => masked && pgProc.proname === `${table.name}_${name}`,
        );
        if (column && pgProc.pronargs === 1) {
          const isComposite = Boolean(resourceOptions.codec?.attributes);
          resourceOptions.from = ({ placeholder }: { placeholder: SQL }) => {
            const value = sql`(${placeholder}).${sql.identifier(column.name)}`;
            // In FROM, a function can refer to the row beside it without LATERAL.
            return isComposite ? sql`unnest(array[${value}])` : value;
          };
          return;
        }
        const reads = tagTexts(pgProc.getTags(), "reads").flatMap((text) => text.split(/[\s,]+/));
        const argument = (row: SQL) => rowWithout(table, row, reads);
        resourceOptions.extensions = Object.assign(Object.create(null), resourceOptions.extensions, {
          rowArgument: argument,
        });
        resourceOptions.from = (row: { placeholder: SQL }, ...others: unknown[]) =>
          from({ ...row, placeholder: argument(row.placeholder) }, ...others);
      },
    },
  },
};
