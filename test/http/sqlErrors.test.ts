import type { Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Pool } from "pg";
import { type ConstraintMessages, loadConstraintMessages } from "../../src/database/constraintMessages.ts";
import { toCodedError } from "../../src/http/toCodedError.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { freePort } from "../../src/network/freePort.ts";

let database: TestDatabase;
let pool: Pool;
let messages: ConstraintMessages;

const schema = /* SQL */ `
  create schema shop;
  create domain shop.percent as numeric constraint percent_range check (value between 0 and 100);
  comment on constraint percent_range on domain shop.percent is 'A percentage lies between 0 and 100.';
  create table shop.parents (id int primary key);
  create table shop.items (
    id int primary key,
    organization_id int not null default 1,
    item_name text not null,
    price int constraint items_price_positive check (price > 0),
    share shop.percent,
    parent_id int constraint items_parent_fkey references shop.parents,
    replaces_id int constraint items_replaces_fkey references shop.items
  );
  comment on constraint items_price_positive on shop.items is '@name ignored

The price has to be above zero.';
  comment on constraint items_parent_fkey on shop.items is '@fieldName parent

What it is a part of.';
  create unique index items_name_key on shop.items (organization_id, lower(item_name), price);
  create unique index items_name_only on shop.items (organization_id, item_name);
  comment on index shop.items_name_only is 'There is an item with this name already.';
  insert into shop.parents values (1);
  insert into shop.items (id, item_name, parent_id) values (1, 'one', 1);
  grant usage on schema shop to plat_anonymous;`;

beforeAll(async () => {
  database = await createTestDatabase("empty");
  pool = new Pool({ connectionString: database.ownerUrl, max: 2 });
  await pool.query(schema);
  messages = await loadConstraintMessages(pool);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

async function refusalOf(sql: string, signedIn = true) {
  const error: unknown = await pool.query(sql).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  const { code, message, extensions } = toCodedError(error, messages, { signedIn, isReadOnly: true });
  expect(message).not.toMatch(/shop|items|parents|relation|constraint/);
  return { code, message, ...extensions };
}

const raise = (detail: string) =>
  `do $$ begin raise exception 'Lot 12 is held.' using errcode = 'PLAT0', detail = '${detail}'; end $$`;

test.each([
  [
    "a unique index with a comment",
    "insert into shop.items (id, item_name) values (2, 'one')",
    { code: "CONFLICT", field: "itemName", message: "There is an item with this name already." },
  ],
  [
    "a primary key without one",
    "insert into shop.items (id, item_name) values (1, 'x')",
    { code: "CONFLICT", field: "id" },
  ],
  [
    "a check, its smart tags skipped",
    "insert into shop.items (id, item_name, price) values (2, 'x', 0)",
    { code: "BAD_USER_INPUT", field: "price", message: "The price has to be above zero." },
  ],
  [
    "a domain's check",
    "insert into shop.items (id, item_name, share) values (2, 'x', 101)",
    { code: "BAD_USER_INPUT", message: "A percentage lies between 0 and 100." },
  ],
  ["a null", "insert into shop.items (id) values (2)", { code: "BAD_USER_INPUT", field: "itemName" }],
  [
    "a reference to nothing",
    "insert into shop.items (id, item_name, parent_id) values (2, 'x', 9)",
    { code: "BAD_USER_INPUT", field: "parentId" },
  ],
  ["a deletion of a referenced row", "delete from shop.parents", { code: "CONFLICT", field: "parentId" }],
  [
    "a reference to nothing in the same table",
    "insert into shop.items (id, item_name, replaces_id) values (2, 'x', 9)",
    { code: "BAD_USER_INPUT", field: "replacesId" },
  ],
  [
    "a deletion of a row that others of the same table reference",
    "insert into shop.items (id, item_name, replaces_id) values (2, 'x', 1); delete from shop.items where id = 1",
    { code: "CONFLICT", field: "replacesId" },
  ],
  ["a number out of range", "select 99999999999::int", { code: "BAD_USER_INPUT" }],
  ["a text that is not a UUID", "select 'x'::uuid", { code: "BAD_USER_INPUT" }],
  ["a missing grant", "set role plat_anonymous; select * from shop.items", { code: "FORBIDDEN" }],
  [
    "a read-only transaction",
    "begin read only; delete from shop.parents",
    { code: "FORBIDDEN", message: "This access token is read-only." },
  ],
  ["a statement that takes too long", "set statement_timeout = 1; select pg_sleep(5)", { code: "INTERNAL" }],
  ["an unknown table", "select * from shop.nothing", { code: "INTERNAL" }],
  [
    "an error raised for the caller",
    raise('{"code": "INVENTORY_UNAVAILABLE", "claimedUntil": "2030-01-01"}'),
    { code: "INVENTORY_UNAVAILABLE", message: "Lot 12 is held.", claimedUntil: "2030-01-01" },
  ],
  ["one raised with a broken detail", raise("{"), { code: "INTERNAL" }],
])("%s is reported for the client", async (_name, sql, expected) => {
  expect(await refusalOf(sql)).toMatchObject(expected);
  await pool.query("rollback; reset all; reset role");
});

test.each([
  [
    "de",
    "Einfügen oder Aktualisieren in Tabelle »items« verletzt Fremdschlüssel-Constraint »items_parent_fkey«",
    "Aktualisieren oder Löschen in Tabelle »parents« verletzt Fremdschlüssel-Constraint »items_parent_fkey« von Tabelle »items«",
  ],
  [
    "fr",
    "une instruction insert ou update sur la table « items » viole la contrainte de clé étrangère « items_parent_fkey »",
    "UPDATE ou DELETE sur la table « parents » viole la contrainte de clé étrangère « items_parent_fkey » de la table « items »",
  ],
  [
    "ja",
    'テーブル"items"への挿入、更新は外部キー制約"items_parent_fkey"に違反しています',
    'テーブル"parents"の更新または削除は、テーブル"items"の外部キー制約"items_parent_fkey"に違反します',
  ],
])("with lc_messages %s, foreign keys are reported as in English", (_language, missing, referenced) => {
  const codeOf = (message: string) => {
    const fields = { code: "23503", schema: "shop", table: "items", constraint: "items_parent_fkey" };
    return toCodedError(Object.assign(new Error(message), fields), messages, { signedIn: true }).code;
  };
  expect([missing, referenced].map(codeOf)).toEqual(["BAD_USER_INPUT", "CONFLICT"]);
});

test("an anonymous viewer without a grant is asked to sign in", async () => {
  expect(await refusalOf("set role plat_anonymous; select * from shop.items", false)).toMatchObject({
    code: "UNAUTHENTICATED",
  });
  await pool.query("reset role");
});

test("two transactions that deadlock are reported as retryable", async () => {
  const [one, two] = await Promise.all([pool.connect(), pool.connect()]);
  try {
    for (const client of [one, two]) await client.query("begin; set local deadlock_timeout = '10ms'");
    await one.query("select from shop.items where id = 1 for update");
    await two.query("select from shop.parents where id = 1 for update");
    const results = await Promise.allSettled([
      one.query("select from shop.parents where id = 1 for update").finally(() => one.query("rollback")),
      two.query("select from shop.items where id = 1 for update").finally(() => two.query("rollback")),
    ]);
    const lost = results.find((result) => result.status === "rejected");
    expect(toCodedError(lost?.reason, messages, { signedIn: true })).toMatchObject({
      code: "CONFLICT",
      extensions: { retryable: true },
    });
  } finally {
    one.release();
    two.release();
  }
});

test("a request that waited for a lock in vain is reported as retryable", async () => {
  const [one, two] = await Promise.all([pool.connect(), pool.connect()]);
  try {
    await one.query("begin; select from shop.items where id = 1 for update");
    await two.query("set lock_timeout = '10ms'");
    const error: unknown = await two
      .query("update shop.items set price = 2 where id = 1")
      .catch((thrown: unknown) => thrown);
    expect(toCodedError(error, messages, { signedIn: true })).toMatchObject({
      code: "CONFLICT",
      message: expect.stringContaining("try again"),
      extensions: { retryable: true },
    });
  } finally {
    await one.query("rollback");
    await two.query("reset lock_timeout");
    one.release();
    two.release();
  }
});

test("a server that is read-only, full or has no connection left is UNAVAILABLE; a read-only token gets its own error", async () => {
  const refusal = async (code: string) =>
    await pool
      .query(`do $$ begin raise exception using errcode = '${code}', message = 'no'; end $$`)
      .catch((error: unknown) => error);
  const readOnly = await pool.query("begin read only; create table t (); rollback").catch((error) => error);
  const changes = { code: "UNAVAILABLE", status: 503, extensions: { retryAfterSeconds: 15 } };
  for (const error of [
    readOnly,
    await refusal("53100"),
    Object.assign(new Error("full"), { code: "ENOSPC" }),
  ])
    expect(toCodedError(error, messages, { signedIn: true })).toMatchObject(changes);
  expect(toCodedError(readOnly, messages, { signedIn: true, isReadOnly: true })).toMatchObject({
    code: "FORBIDDEN",
  });
  for (const code of ["53200", "53300", "58030"])
    expect(toCodedError(await refusal(code), messages, { signedIn: true })).toMatchObject({
      code: "UNAVAILABLE",
      extensions: { retryAfterSeconds: 5 },
    });
});

test("a connection lost during a statement results in UNAVAILABLE, for every viewer", async () => {
  const client = await pool.connect();
  client.on("error", () => {});
  const error: unknown = await Promise.all([
    client.query("select pg_sleep(10)"),
    (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy(),
  ]).catch((thrown: unknown) => thrown);
  client.release(true);
  expect(error).not.toHaveProperty("code");
  expect(toCodedError(error, messages, { signedIn: true })).toMatchObject({ code: "UNAVAILABLE" });
});

test("an unreachable server results in UNAVAILABLE", async () => {
  const nowhere = new Pool({ host: "127.0.0.1", port: await freePort() });
  const error: unknown = await nowhere.query("select 1").catch((thrown: unknown) => thrown);
  expect(toCodedError(error, messages, { signedIn: true })).toMatchObject({
    code: "UNAVAILABLE",
    status: 503,
    extensions: { retryAfterSeconds: 5 },
  });
  await nowhere.end();
});
