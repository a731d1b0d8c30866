import { expect, test } from "@jest/globals";
import { buildSchema, parse } from "postgraphile/graphql";
import { defaultPages, fullPages } from "../../src/limits/defaultPages.ts";

const schema = buildSchema(`
  type Query {
    projects(first: Int): [Project!]
    project: Project
    leadsConnection(first: Int = 2): LeadsConnection
    colors: [String]
  }
  type Project { title: String leads(first: Int = 2): [Lead!] units: [Lead!] }
  type LeadsConnection { nodes: [Lead] }
  type Lead { name: String }`);

// As for lists of a portfolio.
Object.assign(schema.getQueryType()!.getFields().projects!.args[0]!, { extensions: { size: 3 } });

const found = (text: string, data: unknown, variables = {}) =>
  fullPages(data, defaultPages(schema, parse(text), undefined), variables);
const lead = { name: "Ada" };
const project = { title: "North", leads: [lead, lead] };

test("lists that reach their default size are reported by their path, whatever their alias or fragment", () => {
  expect(
    found("{ all: projects { ...more } } fragment more on Project { title leads { name } }", {
      all: [project, { ...project, leads: [lead] }, project],
    }),
  ).toEqual([
    { path: ["all"], first: 3 },
    { path: ["all", 0, "leads"], first: 2 },
    { path: ["all", 2, "leads"], first: 2 },
  ]);
  expect(found("{ project { leads(first: null) { name } } }", { project })).toEqual([
    { path: ["project", "leads"], first: 2 },
  ]);
});

test("requested sizes, shorter lists and lists without a size are not reported", () => {
  const text =
    "query ($first: Int) { projects(first: $first) { leads(first: 2) { name } units { name } } colors }";
  const data = { projects: [project, project, project], colors: ["red", "blue", "green"] };
  expect(found(text, data, { first: 3 })).toEqual([]);
  expect(found(text, data, { first: null })).toEqual([{ path: ["projects"], first: 3 }]);
  expect(found(text, { projects: [project], colors: null })).toEqual([]);
  expect(found(text.replace("Int)", "Int = 3)"), data)).toEqual([]);
  expect(found("{ projects { title } }", { projects: null })).toEqual([]);
  expect(
    found("{ leadsConnection { nodes { name } } }", { leadsConnection: { nodes: [lead, lead] } }),
  ).toEqual([]);
});

test("at most twenty are reported", () => {
  const projects = Array.from({ length: 50 }, () => project);
  expect(found("{ projects(first: 50) { leads { name } } }", { projects })).toHaveLength(20);
});
