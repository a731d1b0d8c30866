import * as graphql from "graphql";
import { expect, test } from "@jest/globals";
import {
  deprecatedUses,
  deprecationOf,
  lastUse,
  withImplied,
} from "../../packages/client/src/cli/usedSchema.ts";

const former = graphql.buildSchema(`
  type Query { lead(id: ID!, deep: Boolean): Lead, leads(filter: LeadsFilter): [Lead!] }
  type Lead { id: ID!, status: Status, source: String, rank: Int }
  enum Status { NEW LOST COLD }
  input LeadsFilter { status: Status, name: NameFilter }
  input NameFilter { is: String, like: String }
`);
const served = graphql.buildSchema(`
  type Query { lead(id: ID!, tenant: ID!): Lead, leads(filter: LeadsFilter): [Lead!] }
  type Lead { id: ID!, status: Status, rank: Int @deprecated(reason: "Use score.") }
  enum Status { NEW LOST }
  input LeadsFilter { status: Status, name: NameFilter, year: Int!, age: Int @deprecated(reason: "Use year.") }
  input NameFilter { is: String }
`);
const broken = (coordinates: string[]) => {
  const used = withImplied(graphql, former, new Map(coordinates.map((one) => [one, "2026-01-02"])));
  return graphql
    .findBreakingChanges(former, served)
    .filter(({ description }) => lastUse(used, description) === "2026-01-02")
    .map(({ description }) => description.split(" was ")[0]);
};

test("breaking changes of used parts are found, also of parts that documents do not name", () => {
  expect(broken(["Query.leads", "Lead.id"])).toEqual([]);
  expect(broken(["Lead.source"])).toEqual(["Lead.source"]);
  // Values of a field that is read.
  expect(broken(["Lead.status"])).toEqual(["COLD"]);
  expect(broken(["Status.NEW"])).toEqual([]);
  // All fields of a variable's type.
  expect(broken(["LeadsFilter"]).toSorted()).toEqual([
    "A required field year on input type LeadsFilter",
    "COLD",
    "NameFilter.like",
  ]);
  expect(broken(["NameFilter.is"])).toEqual([]);
  expect(broken(["Query.lead"])).toEqual(["A required arg tenant on Query.lead"]);
  expect(broken(["Query.lead(deep:)"])).toEqual(["Query.lead arg deep"]);
});

test("deprecated parts have their reason", () => {
  expect(deprecationOf(graphql, served, "Lead.rank")).toBe("Use score.");
  for (const other of ["Lead.status", "Lead.gone", "Query.lead(id:)", "Status.NEW", "NameFilter.is", "Lead"])
    expect(deprecationOf(graphql, served, other)).toBeUndefined();
});

test("programs that name a deprecated part are distinguished from those that could only use it in a variable", () => {
  const uses = (...coordinates: string[]) => {
    const recorded = new Map(coordinates.map((one) => [one, "2026-01-02"]));
    return deprecatedUses(graphql, served, recorded, withImplied(graphql, served, recorded)).map(
      ({ coordinate, isNamed }) => [coordinate, isNamed],
    );
  };
  expect(uses("Lead.rank", "LeadsFilter.status")).toEqual([["Lead.rank", true]]);
  expect(uses("LeadsFilter.age")).toEqual([["LeadsFilter.age", true]]);
  expect(uses("LeadsFilter")).toEqual([["LeadsFilter.age", false]]);
});
