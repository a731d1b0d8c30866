import { performance } from "node:perf_hooks";
import { expect, jest, test } from "@jest/globals";
import { answerText } from "../../src/http/answerText.ts";

const page = {
  data: {
    units: Array.from({ length: 3_000 }, (_, n) => ({
      id: n,
      title: `Unit "${n}" ü\n`,
      nothing: null,
      images: n % 3 ? [{ url: "/a", sizes: [1, 2.5, true, false] }] : [],
      metadata: { a: { b: [undefined, new Date(0), {}] }, left: undefined },
      project: { id: "p" },
    })),
  },
  errors: undefined,
  extensions: { cost: { requested: 1 } },
};

test("a text written in pieces equals that of JSON.stringify, and other work is executed in between", async () => {
  let others = 0;
  const count = setInterval(() => (others += 1), 0);
  const large = { pages: Array.from({ length: 10 }, () => page) };
  expect(await answerText(large, 1e9)).toBe(JSON.stringify(large));
  clearInterval(count);
  expect(others).toBeGreaterThan(0);
});

test("it stops when it exceeds the allowed length, whatever remains", async () => {
  let written = 0;
  const item = {
    get text() {
      written += 1;
      return "x".repeat(1_000);
    },
  };
  const endless = { items: Array.from({ length: 1_000_000 }, () => item) };
  expect(await answerText(endless, 100_000)).toBeUndefined();
  expect(written).toBeLessThan(300);
  expect(await answerText({ a: "x".repeat(92) }, 100)).toHaveLength(100);
  expect(await answerText({ a: "x".repeat(93) }, 100)).toBeUndefined();
});

test("responses that are written concurrently share each slice", async () => {
  // Ends the slice of the previous test.
  await new Promise((next) => setImmediate(next));
  let clock = 0;
  const now = jest.spyOn(performance, "now").mockImplementation(() => clock);
  try {
    // Writing one takes a hundredth of a millisecond.
    const item = {
      get text() {
        clock += 0.01;
        return "x";
      },
    };
    let longest = 0;
    let isDone = false;
    const answers = Promise.all(
      Array.from({ length: 4 }, () => answerText({ items: Array.from({ length: 5_000 }, () => item) }, 1e9)),
    ).then((texts) => {
      isDone = true;
      return texts;
    });
    let before = 0;
    const check = (): void => {
      longest = Math.max(longest, clock - before);
      before = clock;
      if (!isDone) setImmediate(check);
    };
    check();
    expect(new Set((await answers).map((text) => text?.length)).size).toBe(1);
    expect(clock).toBeGreaterThan(100);
    // Eight, and up to 50 elements in each response between two checks of the clock.
    expect(longest).toBeLessThan(12);
  } finally {
    now.mockRestore();
  }
});
