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

test("the lists of an operation are those of its name, and found once", () => {
  const document = parse(
    "query a { projects { title } } query b($n: Int, $m: Int = null) { p: project { leads(first: $n) { name } } projects(first: $m) { title } } mutation c { x }",
  );
  expect(defaultPages(schema, document, "a")).toEqual([{ keys: ["projects"], first: 3 }]);
  const ofB = [
    { keys: ["p", "leads"], first: 2, variable: "n" },
    { keys: ["projects"], first: 3, variable: "m" },
  ];
  expect(defaultPages(schema, document, "b")).toEqual(ofB);
  for (const name of ["c", "d", null, undefined]) expect(defaultPages(schema, document, name)).toEqual([]);
  expect(defaultPages(schema, document, "b")).toBe(defaultPages(schema, document, "b"));
});

test("a variable with a value, and one without, decide for their list only", () => {
  const text = "query ($n: Int) { project { leads(first: $n) { name } } projects { title } }";
  const data = { project, projects: [project, project, project] };
  const projects = { path: ["projects"], first: 3 };
  expect(found(text, data, { n: 2 })).toEqual([projects]);
  expect(found(text, data, { n: 0 })).toEqual([projects]);
  expect(found(text, data, { m: 2 })).toEqual([{ path: ["project", "leads"], first: 2 }, projects]);
});

test("what an answer does not have is no list, and a longer list is none that was cut", () => {
  const text = "{ projects { leads { name } } }";
  for (const data of [null, undefined, {}, { projects: "x" }, { projects: [null, 1, {}] }])
    expect(found(text, data).filter(({ path }) => path.length > 1)).toEqual([]);
  expect(found(text, { projects: [null, project, null, null] })).toEqual([
    { path: ["projects", 1, "leads"], first: 2 },
  ]);
  expect(found(text, { projects: [{ leads: [lead, lead, lead] }] })).toEqual([]);
});
