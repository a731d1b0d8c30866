/**
 * Computations of organizations: within limits, outside of the event loop, and in a queue for each
 * organization.
 */
import { describe, expect, test } from "@jest/globals";
import { budgets } from "../../src/compute/budget.ts";
import { ComputeStopped, createCompute, type Compute } from "../../src/compute/computePool.ts";
import { testCompute } from "../harness/compute.ts";
import { until } from "../harness/until.ts";
import { nestedAll, slowFilter, slowLoop } from "../workflows/bombs.ts";

const compute = testCompute({ threads: 2, taskMs: 300 });
const silent = { warn() {} };

const over = { over: expect.stringMatching(/takes? more/) };
const runs = (amount: number, data: Record<string, unknown> = {}) =>
  Array.from({ length: amount }, (_, n) => ({ executionId: `e${n}`, attempt: 1, data }));
const step = (config: Record<string, unknown>) => ({ id: "s", type: "CREATE_NOTE", config });
const write = (texts: Record<string, unknown>, { by = "tenant", on = compute, data = {} } = {}) =>
  on.run(by, "step", step(texts), runs(1, data)).then(([result]) => result!);
const refused = { error: expect.stringMatching(/take more computing/), code: "LIMIT_EXCEEDED" };

describe("budgets of conditions", () => {
  test.each([4, 6, 18])("100 to the power of %i elements", async (levels) => {
    expect(
      await compute.run("tenant", "condition", null, [{ condition: nestedAll(levels), data: {} }]),
    ).toEqual([over]);
  });

  test("a realistic condition is within the budget", async () => {
    const data = {
      lead: { tags: Array.from({ length: 200 }, (_, n) => `tag ${n}`), note: "x".repeat(20_000) },
    };
    const condition = {
      and: [
        nestedAll(2),
        { some: [{ var: "lead.tags" }, { in: ["199", { var: "" }] }] },
        { in: ["xx", { var: "lead.note" }] },
      ],
    };
    expect(await compute.run("tenant", "condition", null, [{ condition, data }])).toEqual([{ value: true }]);
  });

  test("long texts count by their length", async () => {
    const condition = {
      all: [
        Array.from({ length: 5000 }, (_, n) => n),
        { "!": [{ in: ["y", { cat: ["x".repeat(15_000)] }] }] },
      ],
    };
    expect(await compute.run("tenant", "condition", null, [{ condition, data: {} }])).toEqual([over]);
  });
});

describe("texts of a step share one budget", () => {
  test("150 texts, each of which is within the budget at first", async () => {
    const metadata = Object.fromEntries(Array.from({ length: 150 }, (_, n) => [`k${n}`, slowLoop]));
    expect(await write({ metadata })).toMatchObject(refused);
  });

  test("the budget used by one text is not available to the next one", async () => {
    const half = `{% for i in (1..${budgets.memory / 4}) %}{% break %}{% endfor %}`;
    expect(await write({ a: half })).toMatchObject({ input: { a: "" } });
    expect(await write({ a: half, b: half, c: half, d: half, e: half })).toMatchObject(refused);
    expect(await write({ title: half, html: `${half}${half}${half}${half}` })).toMatchObject(refused);
  });

  test.each<[string, string]>([
    [
      "a text that doubles by a filter",
      '{% assign s = "xxxxxxxx" %}{% for i in (1..60) %}{% assign s = s | append: s %}{% endfor %}',
    ],
    [
      "by capturing",
      '{% assign s = "xxxxxxxx" %}{% for i in (1..60) %}{% capture s %}{{ s }}{{ s }}{% endcapture %}{% endfor %}{% if s == "x" %}{% endif %}',
    ],
    [
      "a list that doubles",
      '{% assign a = "a,b" | split: "," %}{% for i in (1..60) %}{% assign a = a | concat: a %}{% endfor %}',
    ],
    ["a long value written often", "{% for i in (1..100000) %}{{ note }}{% endfor %}"],
    ["wide numbers", '{{ "now" | date: "%1000000000Y" }}'],
    [
      "an expression for each of many elements",
      '{{ (1..400000) | group_by_exp: "x", "x | times: 3" | size }}',
    ],
  ])("%s", async (_, text) => {
    expect(await write({ text }, { data: { note: "x".repeat(20_000) } })).toMatchObject(refused);
  });

  test("a realistic letter with a hundred texts is within the budget", async () => {
    const data = { lead: { name: "Ada", tags: ["a", "b"] }, price: 425_000 };
    const text = `Hello {{ lead.name | upcase }}{% for tag in lead.tags %}, {{ tag }}{% endfor %}: {{ price | money }} ${"x".repeat(500)}`;
    const texts = Object.fromEntries(Array.from({ length: 100 }, (_n, n) => [`t${n}`, text]));
    const result = await write({ ...texts, html: text }, { data });
    expect(result).toMatchObject({ input: { t99: expect.stringMatching(/^Hello ADA, a, b: 425,000.00 x/) } });
  });
});

test("the templates of a mapping share a budget as well", async () => {
  const event = { data: { name: "Ada" } };
  const map = (mapping: Record<string, string>) => compute.run("tenant", "mapping", mapping, [event]);
  expect(
    await map({ who: "data.name", loud: "{{ data.name | upcase }}", broken: "{{ data.name | nope }}" }),
  ).toEqual([{ value: { who: "Ada", loud: "ADA", broken: null } }]);
  expect(await map({ who: "data.name", a: slowLoop, b: slowLoop })).toEqual([over]);
  expect(
    await compute.run("tenant", "mappingFault", null, [{ who: "data name" }, { who: "data.name" }]),
  ).toEqual([{ value: { at: "config.mapping.who", message: expect.any(String) } }, { value: null }]);
});

test("a blocked thread is ended; its item fails, and all others are computed", async () => {
  const texts = ["{{ lead.name }}", slowFilter, "{{ lead.name | upcase }}", slowFilter, "last"];
  const results = await compute.run(
    "tenant",
    "mapping",
    { text: "{{ text }}" },
    texts.map((text) => ({ text })),
  );
  // Values are not evaluated as templates.
  expect(results).toEqual(texts.map((text) => ({ value: { text } })));
  const written = await Promise.all(
    texts.map((text) => write({ text }, { data: { lead: { name: "Ada" } } })),
  );
  expect(written).toMatchObject([
    { input: { text: "Ada" } },
    refused,
    { input: { text: "ADA" } },
    refused,
    { input: { text: "last" } },
  ]);
});

test("the same within one task, in its order", async () => {
  const slow = "{% if slow %}" + slowFilter + "{% endif %}{{ n }}";
  const items = Array.from({ length: 9 }, (_, n) => ({
    executionId: `e${n}`,
    attempt: 1,
    data: { n, slow: n === 3 || n === 8 },
  }));
  const results = await compute.run("tenant", "step", step({ text: slow }), items);
  expect(results).toMatchObject(
    items.map(({ executionId, data }) => ({
      executionId,
      ...(data.slow ? refused : { input: { text: String(data.n) } }),
    })),
  );
});

/** Starts work and records whether it is done. */
function watched(work: Promise<unknown>) {
  const state = { isDone: false };
  const end = () => (state.isDone = true);
  work.then(end, end);
  return state;
}

describe("a tenant does not block others", () => {
  test("while its threads are blocked", async () => {
    const many = watched(compute.run("greedy", "step", step({ text: slowFilter }), runs(20)));
    expect(await write({ text: "{{ 1 | plus: 1 }}" }, { by: "other" })).toMatchObject({
      input: { text: "2" },
    });
    expect(many.isDone).toBe(false);
  });

  test("with a single thread, by time slices", async () => {
    const single = createCompute({ log: silent, threads: 1 });
    try {
      const loop = "{% for i in (1..20000) %}{{ i }}{% endfor %}";
      const greedy = watched(single.run("greedy", "step", step({ text: loop }), runs(500)));
      const [result] = await single.run("other", "condition", null, [{ condition: { "==": [1, 1] } }]);
      expect(result).toEqual({ value: true });
      expect(greedy.isDone).toBe(false);
    } finally {
      await single.stop();
    }
  });

  test("identifies tenants that have used up their share", async () => {
    const single = createCompute({ log: silent, threads: 1, shareMs: 1 });
    try {
      const loop = "{% for i in (1..2000) %}{{ i }}{% endfor %}";
      await single.run("greedy", "step", step({ text: loop }), runs(10));
      expect([single.isSpent("greedy"), single.isSpent("other")]).toEqual([true, false]);
      // The share is restored as time passes.
      await until(() => !single.isSpent("greedy"));
    } finally {
      await single.stop();
    }
  });
});

test("work in progress is rejected when the service stops, and so is later work", async () => {
  const ending: Compute = createCompute({ log: silent });
  const work = ending.run("tenant", "step", step({ text: slowFilter }), runs(1));
  const [outcome] = await Promise.all([work.catch((error: unknown) => error), ending.stop()]);
  expect(outcome).toBeInstanceOf(ComputeStopped);
  await expect(ending.run("tenant", "condition", null, [{ condition: null }])).rejects.toThrow(
    ComputeStopped,
  );
  expect(ending.isSpent("tenant")).toBe(true);
});

test("a definition has at most a million characters of templates", async () => {
  const text = `{{ lead.name }}${"x".repeat(90_000)}`;
  const read = (amount: number) =>
    compute.run("tenant", "definition", null, [
      Array.from({ length: amount }, (_, n) => ({ config: { text }, at: `steps[${n}].config` })),
    ]);
  expect(await read(5)).toMatchObject([
    { value: { "steps[4].config.text": { variables: [["lead", "name"]] } } },
  ]);
  expect(await read(50)).toEqual([{ over: expect.stringMatching(/1,000,000 characters/) }]);
});
