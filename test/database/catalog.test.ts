import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client, type DatabaseError } from "pg";
import {
  catalogKinds,
  readCatalog,
  replaceableKinds,
  type CatalogObject,
} from "../../src/database/catalog.ts";
import { filledTables } from "../../src/database/catalogRows.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";

let source: TestDatabase;
let copy: TestDatabase;
let from: Client;
let to: Client;
let catalog: CatalogObject[];
let rowsOf: string[];
beforeAll(async () => {
  [source, copy] = [await createTestDatabase(), await createTestDatabase("empty")];
  from = new Client({ connectionString: source.ownerUrl });
  to = new Client({ connectionString: copy.ownerUrl });
  await from.connect();
  await to.connect();
  rowsOf = await filledTables(from);
  catalog = await readCatalog(from, { rowsOf });
});
afterAll(async () => {
  await from.end();
  await to.end();
  await copy.drop();
  await source.drop();
});

/**
 * Executes statements together, or in halves after an error. Returns the failed ones: single statements, but
 * rows of a table together, because they may refer to each other.
 */
async function attempt(client: Client, statements: string[]): Promise<string[][]> {
  if (statements.length === 0) return [];
  await client.query("savepoint attempt");
  try {
    await client.query(statements.join(";\n"));
    await client.query("release savepoint attempt");
    return [];
  } catch (error) {
    await client.query("rollback to savepoint attempt; release savepoint attempt");
    if (statements.length === 1 || (error as DatabaseError).code === "23503") return [statements];
    const half = statements.length / 2;
    return [
      ...(await attempt(client, statements.slice(0, half))),
      ...(await attempt(client, statements.slice(half))),
    ];
  }
}

/**
 * Executes groups of statements in order, each after retrying the failed ones, until nothing is left or
 * nothing succeeds.
 */
async function run(client: Client, groups: string[][]): Promise<string[]> {
  let left: string[][] = [];
  const again = async () => {
    const failed = left;
    left = [];
    for (const group of failed) left.push(...(await attempt(client, group)));
  };
  for (const group of groups) {
    await again();
    left.push(...(await attempt(client, group)));
  }
  for (let before = Infinity; left.length > 0 && left.length < before;) {
    before = left.length;
    await again();
  }
  return left.flat();
}

/** Constraints of domains before columns of these domains, keys before foreign keys. */
const steps: ((object: CatalogObject) => boolean)[] = catalogKinds.flatMap((kind) => {
  const only = (object: CatalogObject) => object.kind === kind;
  const ofDomain = (object: CatalogObject) =>
    object.kind === "constraint" && object.identity.includes(" on domain ");
  const foreign = (object: CatalogObject) => object.definition.startsWith("FOREIGN KEY");
  if (kind === "column") return [ofDomain, only];
  if (kind === "constraint")
    return [(o) => only(o) && !ofDomain(o) && !foreign(o), (o) => only(o) && foreign(o)];
  // Grants are listed completely, so created objects must not have default ones.
  return kind === "default privileges" ? [] : [only];
});

/** Rows by table, everything else together. */
function byTable(objects: CatalogObject[]): CatalogObject[][] {
  return objects[0]?.kind === "row" ? [...Map.groupBy(objects, ({ on }) => on).values()] : [objects];
}

async function create(client: Client, objects: CatalogObject[]): Promise<string[]> {
  await client.query("set local check_function_bodies = off");
  const groups = steps.flatMap((step) => byTable(objects.filter(step)));
  return run(
    client,
    groups.map((group) => group.map((object) => object.create)),
  );
}

/** Objects that are in one database only, or differ. */
async function differing(): Promise<string[]> {
  const lines = (objects: CatalogObject[]) =>
    objects.map(({ identity, definition }) => `${identity}: ${definition}`);
  const there = lines(await readCatalog(to, { rowsOf }));
  const here = lines(catalog);
  const [inThere, inHere] = [new Set(there), new Set(here)];
  const differences = [
    ...here.filter((line) => !inThere.has(line)),
    ...there.filter((line) => !inHere.has(line)),
  ];
  return differences.length > 0 || here.join() === there.join()
    ? differences
    : ["The order is not the same."];
}

const isDefault = ({ kind }: CatalogObject) => kind === "default privileges";

test("no two objects have the same identity", () => {
  expect(new Set(catalog.map(({ identity }) => identity)).size).toBe(catalog.length);
  expect(catalog.length).toBeGreaterThan(10_000);
});

test("objects that are read in one database can be created in an empty one, where they are read again", async () => {
  await to.query("begin");
  expect(await create(to, catalog)).toEqual([]);
  expect(
    await attempt(
      to,
      catalog.filter(isDefault).map((object) => object.create),
    ),
  ).toEqual([]);
  await to.query("commit");
  expect(await differing()).toEqual([]);
});

test("replaceable objects can be dropped and created again", async () => {
  await to.query("begin");
  const replaceable = catalog.filter(({ kind }) => replaceableKinds.has(kind));
  const defaults = catalog.filter(isDefault);
  const undone = [...defaults, ...replaceable].reverse();
  const groups = [...catalogKinds]
    .reverse()
    .flatMap((kind) => byTable(undone.filter((object) => object.kind === kind)));
  const left = await run(
    to,
    groups.map((group) => group.map(({ drop }) => drop)),
  );
  // Functions that checks, defaults, generated columns and indexes call remain.
  const needed = left.filter((statement) => !statement.startsWith("drop function app_"));
  expect(needed).toEqual([]);
  expect(left.length).toBeLessThan(60);
  const bare = await readCatalog(to, { rowsOf });
  expect(bare.filter(({ kind, drop }) => replaceableKinds.has(kind) && !left.includes(drop))).toEqual([]);
  expect(await create(to, replaceable)).toEqual([]);
  expect(
    await attempt(
      to,
      defaults.map((object) => object.create),
    ),
  ).toEqual([]);
  await to.query("commit");
  expect(await differing()).toEqual([]);
});
