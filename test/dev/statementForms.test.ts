import { expect, test } from "@jest/globals";
import {
  commentTarget,
  grantsOnSame,
  isVisibleInApi,
  createdObject,
  replacementFor,
  describesObject,
  undoStatement,
  withoutBody,
} from "../../src/dev/statementForms.ts";
import { editOf, refersToDropped, namesOf } from "../../src/dev/editCurrent.ts";
import { isCall } from "../../src/dev/undoCalls.ts";

test("recognizes the object that a statement creates, and how to drop it", () => {
  expect(
    createdObject(
      "create function app_public.f(a int default 1,\n  b text) returns setof app_public.t\nlanguage sql as $$ select 1 $$",
    ),
  ).toEqual({
    kind: "function",
    name: "app_public.f",
    drop: "drop function app_public.f;",
    shape: "(a int default 1, b text) returns setof app_public.t",
  });
  expect(
    createdObject("create or replace view app_public.v with (security_invoker) as select 1"),
  ).toMatchObject({
    kind: "view",
    drop: "drop view app_public.v;",
  });
  expect(createdObject('create policy "own rows" on app_public.t for select using (true)')).toMatchObject({
    drop: 'drop policy if exists "own rows" on app_public.t;',
  });
  expect(
    createdObject(
      "create constraint trigger _500_x after update of a, b on app_public.t deferrable for each row execute function f()",
    ),
  ).toMatchObject({ kind: "trigger", drop: "drop trigger if exists _500_x on app_public.t;" });
  for (const none of [
    "grant select on app_public.t to plat_user",
    "select app_private.make('f')",
    "insert into t values (1)",
  ])
    expect(createdObject(none)).toBeUndefined();
});

test("functions and views are replaced; policies and triggers are dropped before they are created", () => {
  expect(replacementFor("create function f() returns int language sql as 'select 1'")).toMatch(
    /^create or replace function f\(\)/,
  );
  expect(replacementFor("create or replace view v as select 1")).toBe("create or replace view v as select 1");
  expect(replacementFor("create policy p on t")).toBe("drop policy if exists p on t; create policy p on t");
  expect(replacementFor("comment on table t is 'T.'")).toBe("comment on table t is 'T.'");
});

test("grants and comments refer to the object with exactly that name", () => {
  expect(describesObject("grant execute on function app_public.f to plat_user", "app_public.f")).toBe(true);
  expect(describesObject("comment on function app_public.f(int) is 'F.'", "app_public.f")).toBe(true);
  expect(describesObject("grant execute on function app_public.f_more to plat_user", "app_public.f")).toBe(
    false,
  );
  expect(describesObject("select app_private.make('app_public.f')", "app_public.f")).toBe(false);
});

test("a comment refers to its object", () => {
  expect(commentTarget("comment on column app_public.t.is_open is 'Whether it is open.'")).toBe(
    "column app_public.t.is_open",
  );
  expect(commentTarget("COMMENT ON FUNCTION f(int)\n  IS null")).toBe("FUNCTION f(int)");
  expect(commentTarget("grant select on t to plat_user")).toBeUndefined();
});

test("removed grants and comments can be revoked; other removed statements cannot", () => {
  expect(
    undoStatement("grant insert (a, b), update (b), delete\n  on app_public.t to plat_user, plat_anonymous;"),
  ).toBe("revoke insert (a, b), update (b), delete on app_public.t from plat_user, plat_anonymous;");
  expect(undoStatement("GRANT EXECUTE ON FUNCTION f(int, text) TO plat_user")).toBe(
    "revoke EXECUTE on FUNCTION f(int, text) from plat_user;",
  );
  expect(undoStatement("comment on column t.on_to is 'On to it.';")).toBe(
    "comment on column t.on_to is null;",
  );
  for (const none of [
    "grant plat_user to plat_authenticator",
    "grant select on t to plat_user with grant option",
    "revoke select on t from plat_user",
    "select app_private.make('grant a on b to c')",
    "insert into t values (1)",
    "create function f() returns int language sql as 'select 1'",
  ])
    expect(undoStatement(none)).toBeUndefined();
});

test("finds the grants on one object", () => {
  const one = "grant select on app_public.t to plat_user";
  expect(grantsOnSame(one, "grant update (a)\n on app_public.t to plat_anonymous;")).toBe(true);
  expect(grantsOnSame(one, "grant select on app_public.ts to plat_user")).toBe(false);
  expect(grantsOnSame("select 1", "select 1")).toBe(false);
});

test("the frame of a function excludes its body, and nothing else", () => {
  const made = (body: string, more = "") =>
    `create function f() returns int language sql ${more} as $$ ${body} $$;`;
  expect(withoutBody(made("select 1"))).toBe(withoutBody(made("select 2")));
  expect(withoutBody(made("select 1"))).not.toBe(withoutBody(made("select 1", "stable")));
  expect(withoutBody("comment on function f() is 'as $$ a $$'")).toBe(
    "comment on function f() is 'as $$ a $$'",
  );
});

test("a difference is visible in the API unless it is a policy, a trigger, a function's body, or internal", () => {
  const object = (kind: "function" | "policy" | "trigger" | "comment", create: string) => ({
    kind,
    identity: `${kind} f`,
    definition: create,
    create,
    drop: "",
  });
  const made = (body: string, result = "int") =>
    object(
      "function",
      `CREATE OR REPLACE FUNCTION f()\n RETURNS ${result}\nAS $function$ ${body} $function$`,
    );
  const differs = (here: ReturnType<typeof object> | undefined, wanted: ReturnType<typeof object>) =>
    isVisibleInApi({ kind: wanted.kind, identity: wanted.identity, wanted, ...(here && { here }) });
  expect(differs(made("select 1"), made("select 2"))).toBe(false);
  expect(differs(made("select 1"), made("select 1", "bigint"))).toBe(true);
  expect(differs(undefined, made("select 1"))).toBe(true);
  expect(differs(undefined, object("policy", "create policy"))).toBe(false);
  expect(differs(undefined, object("trigger", "create trigger"))).toBe(false);
  expect(differs(undefined, object("comment", "comment on function f() is 'F.'"))).toBe(true);
  const isShownAs = (kind: "function" | "comment" | "grant" | "row", identity: string) =>
    isVisibleInApi({ kind, identity, here: { ...made("select 1"), kind, identity } });
  expect(isShownAs("row", 'row app_hidden.record_types ["leads"]')).toBe(false);
  expect(isShownAs("row", 'row app_private.error_codes ["GONE"]')).toBe(false);
  expect(isShownAs("row", 'row app_public.home_type_values ["HOUSE"]')).toBe(true);
  expect(isShownAs("function", "function app_private.tg_leads__event_insert()")).toBe(false);
  expect(isShownAs("comment", "comment on function app_private.tg_leads__parents()")).toBe(false);
  expect(isShownAs("function", "function app_hidden.record_id(text, text)")).toBe(true);
  expect(isShownAs("function", "function app_public.leads_name(app_public.leads)")).toBe(true);
  expect(isShownAs("grant", "grant SELECT on table app_public.leads to plat_user")).toBe(true);
});

test("after an edit of current.sql, removed tables and indexes are dropped, and later statements are executed again", () => {
  const first = "create table app_public.firsts (id uuid);";
  const second = "create table if not exists app_public.seconds (id uuid, label text);";
  const onSecond =
    "create index seconds_label on app_public.seconds (label);\nalter table app_public.seconds enable row level security;";
  expect(editOf(`${first}\n${second}`, first)).toEqual({ tables: [], indexes: [], kept: first });
  expect(editOf(first, `${first}\n${second}\n${onSecond}`)).toEqual({
    tables: ["app_public.seconds"],
    indexes: [],
    kept: first,
  });
  expect(editOf(first, `${first} create unique index units_label on app_public.units (label);`)).toEqual({
    tables: [],
    indexes: ["app_public.units_label"],
    kept: first,
  });
  for (const other of [
    "alter table app_public.units add column label text;",
    "update app_public.units set label = '';",
    "select app_private.create_enum('e', 'E.', array[['A', 'A.']]);",
  ])
    expect(editOf("", other)).toBeUndefined();
});

test("statements about a dropped table are found by its name, and those about a function by its definition and name", () => {
  const dropped = { tables: namesOf(["app_public.seconds"]), others: ["app_public.seconds_label"] };
  for (const text of [
    "select app_private.make_record('seconds', 'second');",
    "create policy p on app_public.seconds using (true);",
    "create function app_public.seconds_label(s app_public.seconds) returns text language sql as $$ select '' $$;",
    "grant execute on function app_public.seconds_label to plat_user;",
  ])
    expect(refersToDropped(text, dropped)).toBe(true);
  for (const text of [
    "create policy p on app_public.seconds_left using (true);",
    "comment on table app_public.waits is 'How many seconds somebody waits.';",
    "create function app_public.f() returns text language sql as $$ select app_public.seconds_label(null) $$;",
  ])
    expect(refersToDropped(text, dropped)).toBe(false);
});

test("a call of a generator is distinguished from other statements", () => {
  expect(isCall("select app_private.make_record('t', 's');")).toBe(true);
  for (const other of ["insert into app_private.limits select 1;", "select 1;", "grant select on t to r;"])
    expect(isCall(other)).toBe(false);
});
