import { expect, test } from "@jest/globals";
import { offsetOfPosition, placeAt, splitStatements } from "../../src/database/sqlStatements.ts";

const texts = (sql: string) => splitStatements(sql).map(({ text }) => text);

test("a semicolon inside a string, quoted name, comment, dollar quote or parentheses does not end a statement", () => {
  expect(texts("select 'a;''b'; select 2")).toEqual(["select 'a;''b';", "select 2"]);
  expect(texts(String.raw`select E'a\';b', '\'; select 1;`)).toEqual([
    String.raw`select E'a\';b', '\';`,
    "select 1;",
  ]);
  expect(texts('select ";" as "a""b;";')).toEqual(['select ";" as "a""b;";']);
  expect(texts("select 1 -- one; two\n, 2 /* ; /* ; */ ; */;")).toHaveLength(1);
  expect(texts("do $$ begin; end $$; do $a$ $$ ; $b$ $a$;")).toEqual([
    "do $$ begin; end $$;",
    "do $a$ $$ ; $b$ $a$;",
  ]);
  expect(texts("create rule r as on insert to t do also (select 1; select 2); select 3;")).toHaveLength(2);
});

test("names and parameters with dollars do not open a quote", () => {
  expect(texts("select a$b$ from t; select $1; select 2 as b$b$;")).toEqual([
    "select a$b$ from t;",
    "select $1;",
    "select 2 as b$b$;",
  ]);
});

test("the body of a function in standard SQL belongs to its statement, the begin of a transaction does not", () => {
  const body =
    "create or replace function f() returns int language sql begin atomic; select case when true then 1 end; select 2; end;";
  expect(texts(`${body}\nselect 1;`)).toEqual([body, "select 1;"]);
  expect(texts("begin; select 1; end;")).toEqual(["begin;", "select 1;", "end;"]);
  expect(texts("create procedure p() begin atomic insert into t values (1); end; commit;")).toHaveLength(2);
});

test("comments between statements belong to none; offset and line are those of the statement", () => {
  const sql = "-- first\n\n/* more */ select\n  1;\n\n-- second\nselect 2;;\n-- the end\n";
  expect(splitStatements(sql)).toEqual([
    { text: "select\n  1;", offset: sql.indexOf("select"), line: 3 },
    { text: "select 2;", offset: sql.indexOf("select 2"), line: 7 },
  ]);
  expect(splitStatements("-- nothing\n")).toEqual([]);
});

test("unterminated text extends to the end, and the server reports it", () => {
  for (const open of ["select 'a", 'select "a', "select $$a", "select 1 /* a", "select (1"])
    expect(texts(`${open}; select 2;`)).toHaveLength(1);
});

test("a string that continues on the next line is one token, and characters beyond the first plane count once", () => {
  expect(texts("comment on table t is E'a\\n'\n  'b;'; select 1;")).toHaveLength(2);
  const sql = "select '😀',\n  wrong";
  const offset = offsetOfPosition(sql, 15);
  expect(sql.slice(offset)).toBe("wrong");
  expect(placeAt(sql, offset)).toEqual({ line: 2, column: 3 });
});
