/** The published package: its size, the documents of all operations, and its types. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import {
  buildSchema,
  getOperationAST,
  type GraphQLSchema,
  NoDeprecatedCustomRule,
  parse,
  specifiedRules,
  validate,
} from "graphql";
import { generate, scalars } from "../../packages/client/scripts/generate.ts";
import type { ErrorDetails } from "../../packages/client/src/index.ts";
import { errorCodes } from "../../src/base/errors.ts";
import { operationCost } from "../../src/limits/operationCost.ts";
import { planningSteps } from "../../src/limits/planningSteps.ts";
import { queryLimits } from "../../src/admission/queryLimits.ts";
import { builtClient } from "./built.ts";

let folder: string;
let dist: string;
let schema: GraphQLSchema;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "plat-client-"));
  dist = join(await builtClient(folder), "dist");
  schema = buildSchema(await readFile(join(import.meta.dirname, "../../schema.graphql"), "utf8"));
});
afterAll(async () => rm(folder, { recursive: true }));

const text = (name: string) => readFile(join(dist, name), "utf8");
const isOperation = ([name]: [string, unknown]) => /(Query|Mutation)$/.test(name);
const documents = async () =>
  Object.entries((await import(join(dist, "documents.js"))) as Record<string, string>).filter(isOperation);

test("the client has less than 8 kB compressed, without a bundler", async () => {
  const names = (await readdir(dist)).filter((name) => name.endsWith(".js"));
  const core = names.filter((name) => name !== "documents.js" && name !== "schema.js").toSorted();
  expect(core).toEqual(
    ["client", "document", "errors", "events", "index", "pages", "retries", "uploads", "webhooks"].map(
      (n) => `${n}.js`,
    ),
  );
  const whole = (await Promise.all(core.map(text))).join("");
  expect(whole.length).toBeLessThan(28_000);
  expect(gzipSync(whole).length).toBeLessThan(8_000);
  // It only imports files of the package.
  for (const [, from] of whole.matchAll(/from "([^"]+)"/g)) expect(from).toMatch(/^\.\/\w+\.js$/);
});

test("there is a document for each operation, valid, within the limits, and with every argument", async () => {
  const made = await documents();
  const fields = [schema.getQueryType()!, schema.getMutationType()!].flatMap((type) =>
    Object.values(type.getFields()).filter(({ deprecationReason }) => !deprecationReason),
  );
  expect(made).toHaveLength(fields.length);
  for (const [name, source] of made) {
    const document = parse(source);
    expect([name, validate(schema, document)]).toEqual([name, []]);
    const operation = getOperationAST(document)!;
    const field = fields.find(
      (one) => name === `${one.name}${operation.operation === "query" ? "Query" : "Mutation"}`,
    )!;
    const taken = operation.variableDefinitions?.map(({ variable }) => variable.name.value);
    expect([name, taken]).toEqual([
      name,
      field.args.filter(({ deprecationReason }) => !deprecationReason).map((argument) => argument.name),
    ]);
    // Queries of records of any type take the most steps.
    const allowed = queryLimits.planning * (/^nodes?Query$/.test(name) ? 0.9 : 0.5);
    expect(planningSteps(schema, document, operation).steps.total).toBeLessThan(allowed);
    expect(operationCost(schema, document, null, {}).total).toBeLessThan(queryLimits.cost / 10);
    expect(source.length).toBeLessThan(10_000);
  }
});

test("every scalar has a type", () => {
  const declared = Object.values(schema.getTypeMap()).filter(
    (type) => type.constructor.name === "GraphQLScalarType",
  );
  expect(Object.keys(scalars).toSorted()).toEqual(declared.map(({ name }) => name).toSorted());
  expect(() => generate(buildSchema("scalar Shade type Query { shade: Shade }"))).toThrow(
    "scripts/generate.ts does not know the scalar Shade.",
  );
});

test("the error codes are those of the service, and two of the client", async () => {
  const own = { NETWORK_ERROR: true, UNEXPECTED_ANSWER: true };
  // A code that only the service or only the client has fails to compile.
  const known: Record<keyof ErrorDetails, unknown> = { ...errorCodes, ...own };
  const both: Record<Exclude<keyof ErrorDetails, keyof typeof own>, unknown> & typeof errorCodes = errorCodes;
  const declared = [...(await text("errors.d.ts")).matchAll(/^ {4}([A-Z_]+): /gm)].map(([, code]) => code);
  expect(declared.toSorted()).toEqual(Object.keys({ ...known, ...both }).toSorted());
});

test("the documents of the example application are valid, and use nothing deprecated", async () => {
  const source = await readFile(
    join(import.meta.dirname, "../../examples/sales-floor/src/operations.ts"),
    "utf8",
  );
  const texts = [...source.matchAll(/`([^`]+)`/g)].map(([, one]) => one!);
  expect(texts.length).toBeGreaterThan(10);
  const document = parse(texts.join("\n"));
  expect(validate(schema, document, [...specifiedRules, NoDeprecatedCustomRule])).toEqual([]);
});
