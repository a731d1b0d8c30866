import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { parseGraphQLRequest } from "../../src/http/graphqlRequest.ts";
import { jsonLimits, measureJson, parseJson } from "../../src/http/jsonText.ts";
import { startServer, type TestServer, tokens } from "./server.ts";

const bodyWith = (value: string) => Buffer.from(`{"query":"{ ok }","variables":{"a":${value}}}`);

/** The number of values in a JSON value by definition: itself and everything in it. */
function count(value: unknown): number {
  return typeof value === "object" && value !== null
    ? 1 + Object.values(value).reduce((sum: number, child) => sum + count(child), 0)
    : 1;
}

test.each([
  ["[]"],
  ["[1,1,1]"],
  ['{"a":{"b":[1,{"c":null}]},"d":"x"}'],
  ['["\\"],[{","\\\\",",[{"]'],
  ['"[[[[,,,,"'],
  ['[{},{},[[]],"\\u005b"]'],
])("the measure of %s equals its number of values", (text) => {
  const { values } = measureJson(Buffer.from(text));
  // Every value but the outermost begins with a bracket or follows one or a comma; a container can do both.
  expect(values + 1).toBeGreaterThanOrEqual(count(JSON.parse(text)));
  expect(values).toBeLessThanOrEqual(2 * count(JSON.parse(text)));
});

test("up to the maximum number of values and levels are accepted, one more is refused", () => {
  const ones = (amount: number) => Buffer.from(`[${"1,".repeat(amount - 1)}1]`);
  expect(parseJson(ones(jsonLimits.values), "The body").value).toHaveLength(jsonLimits.values);
  expect(() => parseJson(ones(jsonLimits.values + 1), "The body")).toThrow(/at most 250000 values/);
  const nested = (depth: number) => Buffer.from("[".repeat(depth) + "]".repeat(depth));
  expect(parseJson(nested(jsonLimits.depth), "The body").value).toEqual(expect.any(Array));
  expect(() => parseJson(nested(jsonLimits.depth + 1), "The body")).toThrow(/64 levels deep/);
});

test.each([
  ["ones", `[${"1,".repeat(4_999_000)}1]`],
  ["empty objects", `[${"{},".repeat(3_330_000)}1]`],
  ["empty arrays", `[${"[],".repeat(3_330_000)}1]`],
  ["members", `{${'"a":1,'.repeat(1_660_000)}"b":1}`],
])("10 MB of %s are refused before any object is created", (_name, value) => {
  const bytes = bodyWith(value);
  // The text is invalid: if the scan did not end early, parsing would have reported that.
  bytes[bytes.length - 3] = 0x2c;
  const before = process.memoryUsage().heapUsed;
  expect(() => parseGraphQLRequest(bytes)).toThrow(expect.objectContaining({ code: "LIMIT_EXCEEDED" }));
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(8_000_000);
});

test("a NUL character is found anywhere, and text that only looks like one is accepted", () => {
  const refusedAt = (value: string) => {
    try {
      parseGraphQLRequest(bodyWith(value));
    } catch (error) {
      return (error as { extensions?: { field?: string } }).extensions?.field;
    }
    return undefined;
  };
  expect(refusedAt('[1,{"b":["x","\\u0000"]}]')).toBe("variables.a.1.b.1");
  expect(refusedAt('{"b":{"c\\u0000":1}}')).toBe("variables.a.b");
  expect(refusedAt('"\\\\u0000"')).toBeUndefined();
});

test.each([
  ['"\\u0000"', true],
  ['{"a\\u0000":1}', true],
  ['["\\"\\u0000"]', true],
  ['"\\\\u0000"', false],
  ['"\\u00001"', true],
  ['"\\u0001\\u0010\\u0100\\u1000"', false],
  ['"u0000"', false],
])("whether the texts of %s are searched for NUL characters is decided from its bytes: %s", (text, may) => {
  expect(measureJson(Buffer.from(text)).mayHoldNul).toBe(may);
  expect(JSON.stringify(JSON.parse(text)).includes("\\u0000") || !may).toBe(true);
});

test("duplicate properties count each time; the last one is used", () => {
  expect(parseGraphQLRequest(Buffer.from('{"query":"{ a }","query":"{ b }"}')).query).toBe("{ b }");
  expect(() => parseGraphQLRequest(bodyWith(`{${'"a":1,'.repeat(jsonLimits.values)}"a":1}`))).toThrow(
    /at most \d+ values/,
  );
});

describe("over HTTPS", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(async () => server[Symbol.asyncDispose]());
  const headers = { "content-type": "application/json", authorization: `Bearer ${tokens.good}` };

  test("too many values are refused with a code", async () => {
    const body = bodyWith(`[${"1,".repeat(4_999_000)}1]`);
    const answer = await server.send({ headers, body });
    expect([answer.status, answer.json.errors[0].extensions]).toEqual([
      400,
      expect.objectContaining({ code: "LIMIT_EXCEEDED", limit: 250_000 }),
    ]);
  });

  test("large bodies that one viewer sends at once are parsed in turn", async () => {
    const body = bodyWith(`"${"x".repeat(9_000_000)}"`);
    const answers = await Promise.all(Array.from({ length: 4 }, () => server.send({ headers, body })));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });
});
