/** The aggregates in the API are exactly the meaningful ones for the measure of a field. */
import { expect, test } from "@jest/globals";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { buildSchema, type GraphQLObjectType, isObjectType } from "postgraphile/graphql";
import { TYPES } from "postgraphile/@dataplan/pg";
import { aggregatesOf } from "../../src/schema/measures.ts";

const schema = buildSchema(await readFile(join(import.meta.dirname, "../../schema.graphql"), "utf8"));

const fieldsOf = (name: string): string[] => {
  const type = schema.getType(name);
  return isObjectType(type) ? Object.keys(type.getFields()) : [];
};

test("deviations and variances are not offered", () => {
  expect(Object.keys(schema.getTypeMap()).filter((name) => /stddev|variance/i.test(name))).toEqual([]);
});

test("amounts and quantities have a sum; ratios, ranks, settings and versions have none", () => {
  const sum = fieldsOf("UnitSumAggregates");
  expect(sum).toEqual(expect.arrayContaining(["price", "soldPrice", "sqft", "bedrooms"]));
  for (const name of ["ppsf", "level", "daysOnMarket", "version"]) expect(sum).not.toContain(name);
  expect(fieldsOf("UnitAverageAggregates")).toEqual(
    expect.arrayContaining(["ppsf", "daysOnMarket", "price"]),
  );
  expect(fieldsOf("UnitAverageAggregates")).not.toContain("level");
  expect(fieldsOf("UnitMaxAggregates")).toEqual(expect.arrayContaining(["level", "price"]));
  expect(fieldsOf("ProjectAverageAggregates")).toEqual(["serviceIndex"]);
  expect(fieldsOf("ProjectSumAggregates")).toEqual([]);
});

test("distinct values are counted for records, references and enumerations", () => {
  const counted = fieldsOf("LeadDistinctCountAggregates");
  expect(counted).toEqual(expect.arrayContaining(["id", "assigneeId", "status", "origin"]));
  for (const name of ["email", "insertedAt", "subscribed", "tags", "metadata", "budgetMax", "version"])
    expect(counted).not.toContain(name);
});

test("groups have the same aggregates, without conditions", () => {
  const { args } = (schema.getType("UnitConnection") as GraphQLObjectType).getFields().groupedAggregates!;
  expect(args.map(({ name }) => name)).toEqual(["groupBy"]);
  expect(Object.keys(schema.getTypeMap()).filter((name) => name.includes("Having"))).toEqual([]);
});

test("a number without the tag has no aggregates, and an unknown measure is refused", () => {
  expect(aggregatesOf(TYPES.int, undefined)).toEqual([]);
  expect(aggregatesOf(TYPES.int, { measures: "quantity" })).toEqual(["sum", "average", "min", "max"]);
  expect(aggregatesOf(TYPES.uuid, undefined)).toEqual(["distinctCount"]);
  expect(() => aggregatesOf(TYPES.int, { measures: "length" })).toThrow("@measures length");
});
