/** Which columns the subqueries of lists keep. */
import { expect, test } from "@jest/globals";
import { withUsedColumns } from "../../src/database/usedColumns.ts";

const rows = (alias: string, order = `order by "u"."registered_at" desc`) =>
  `(/* rows */select u.* from (select /* used columns */ t.* from a t union all select /* used columns */ t.* from b t) u ${order} /* end of rows */) as ${alias}`;
const reduced = (alias: string, columns: string) => rows(alias).replaceAll("/* used columns */ t.*", columns);

test("those of the alias and of the order", () => {
  expect(withUsedColumns(`select __leads__."id", __leads__."name" from ${rows("__leads__")}`)).toBe(
    `select __leads__."id", __leads__."name" from ${reduced("__leads__", 't."id", t."name", t."registered_at"')}`,
  );
});

test("each of two subqueries its own", () => {
  expect(
    withUsedColumns(`select __a__."id", (select __b__."name" from ${rows("__b__")}) from ${rows("__a__")}`),
  ).toBe(
    `select __a__."id", (select __b__."name" from ${reduced("__b__", 't."name", t."registered_at"')}) from ${reduced("__a__", 't."id", t."registered_at"')}`,
  );
});

test.each([
  [
    "of a subquery whose rows are used entirely",
    `select __leads__."id", f(__leads__) from ${rows("__leads__")}`,
  ],
  ["of all columns by a star", `select __leads__."id", __leads__.* from ${rows("__leads__")}`],
  ["of an order by entire rows", `select __leads__."id" from ${rows("__leads__", 'order by f("u")')}`],
  ["of a subquery without columns", `select count(*) from ${rows("__leads__")}`],
  ["of any other statement", "select t.* from a t"],
])("all columns %s", (_title, text) => {
  expect(withUsedColumns(text)).toBe(text);
});
