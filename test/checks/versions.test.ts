/** Breaking changes and deprecations between versions of the schema. */
import { expect, test } from "@jest/globals";
import { buildSchema } from "postgraphile/graphql";
import { breakingChanges, deprecationFaults } from "../../src/checks/versions.ts";

const schema = (fields: string) =>
  buildSchema(`type Query { lead(id: ID!): Lead } type Lead { id: ID! ${fields} }`);

test("a deprecation names the successor and the date of its end", () => {
  const faults = deprecationFaults(
    schema(`
      good: Int @deprecated(reason: "Use \`better\`. Removed after 2027-06-01.")
      vague: Int @deprecated(reason: "Do not use this.")
      forever: Int @deprecated(reason: "Use \`better\`.")
      silent: Int @deprecated
      better(old: Int @deprecated(reason: "Not needed.")): Int`),
  );
  expect(faults.map((fault) => fault.split(" ")[0])).toEqual([
    "Lead.vague",
    "Lead.forever",
    "Lead.silent",
    "Lead.better(old:)",
  ]);
});

test("breaking changes are found, and others are accepted", async () => {
  const before = schema("name: String! phone(format: String): String");
  const changes = (after: string) => breakingChanges(before, schema(after));
  expect(await changes("name: String! phone(format: String): String! email: String")).toEqual([]);
  expect(await changes("name: String phone(format: String): String")).toHaveLength(1);
  expect(await changes("name: String! phone(format: String!): String")).toHaveLength(1);
  expect(await changes("name: String!")).toEqual([expect.stringContaining("Lead.phone")]);
});
