/** The documents of the service's own pages. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "@jest/globals";
import { buildSchema, type GraphQLSchema, parse, validate } from "postgraphile/graphql";
import { ownDocuments } from "../../src/http/ownDocuments.ts";

let schema: GraphQLSchema;
beforeAll(async () => {
  schema = buildSchema(await readFile(join(import.meta.dirname, "../../schema.graphql"), "utf8"));
});

test.each([...ownDocuments])("%s is valid for the served schema", (_id, text) => {
  expect(validate(schema, parse(text))).toEqual([]);
});

test("documents have the names of their pages, and operations their own", () => {
  const ids = [...ownDocuments.keys()];
  expect(ids.filter((id) => !/^(portal|jobs):\w+$/.test(id))).toEqual([]);
  expect(ids).toEqual(expect.arrayContaining(["portal:SignIn", "portal:Schema", "jobs:SignIn", "jobs:Jobs"]));
  const operations = [...ownDocuments.values()].map((text) => /^(?:query|mutation) (\w+)/.exec(text)?.[1]);
  expect(operations).not.toContain(undefined);
});

test("the reference reads a type with the five wrappers that it can have", () => {
  const [, wrapped] = /type \{ ((?:kind name ofType \{ )+)kind name \}/.exec(
    ownDocuments.get("portal:Schema")!,
  )!;
  expect(wrapped!.split("ofType")).toHaveLength(6);
});
