import { expect, test } from "@jest/globals";
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

test("a text written in pieces is that of JSON.stringify, and lets others in between", async () => {
  let others = 0;
  const count = setInterval(() => (others += 1), 0);
  const large = { pages: Array.from({ length: 10 }, () => page) };
  expect(await answerText(large, 1e9)).toBe(JSON.stringify(large));
  clearInterval(count);
  expect(others).toBeGreaterThan(0);
});

test("it stops when it gets longer than allowed, whatever is still to come", async () => {
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
