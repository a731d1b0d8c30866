/** The parts of the mutation tests that need neither Stryker nor a database. */
import { expect, test } from "@jest/globals";
import { executedIn, isIn, partsOf } from "./reach.ts";
import { offsetOf, withReplacement } from "./replacement.ts";
import { inRandomOrder, isSampled } from "./sample.ts";
import { mutationScore } from "./score.ts";

const text = "const a = 1;\nif (a > 0) {\n  refuse();\n}\n";

test("a replacement within a line", () => {
  const location = { start: { line: 2, column: 5 }, end: { line: 2, column: 10 } };
  expect(withReplacement(text, { location, replacement: "false" })).toBe(
    "const a = 1;\nif (false) {\n  refuse();\n}\n",
  );
});

test("a replacement of several lines", () => {
  const location = { start: { line: 2, column: 12 }, end: { line: 4, column: 2 } };
  expect(withReplacement(text, { location, replacement: "{}" })).toBe("const a = 1;\nif (a > 0) {}\n");
});

test("a text without the line is refused", () => {
  expect(offsetOf(text, { line: 1, column: 1 })).toBe(0);
  expect(() => offsetOf(text, { line: 9, column: 1 })).toThrow("no line 9");
});

test("the innermost block of a function says whether a place is executed", () => {
  const range = (startOffset: number, endOffset: number, count: number) => ({
    startOffset,
    endOffset,
    count,
  });
  const functions = [
    { functionName: "", isBlockCoverage: true, ranges: [range(0, 20, 1)] },
    { functionName: "f", isBlockCoverage: true, ranges: [range(4, 12, 3), range(6, 8, 0)] },
    { functionName: "g", isBlockCoverage: false, ranges: [range(15, 18, 0)] },
    { functionName: "h", isBlockCoverage: false, ranges: [range(18, 20, 1)] },
  ];
  const parts = partsOf(executedIn(functions, 20));
  expect(parts).toEqual([4, 6, 8, 12, 18, 20]);
  expect([0, 4, 5, 6, 7, 8, 11, 12, 18, 19, 20].filter((offset) => isIn(parts, offset))).toEqual([
    4, 5, 8, 11, 18, 19,
  ]);
  expect(partsOf(new Uint8Array(3))).toEqual([]);
  expect(isIn([], 2)).toBe(false);
});

test("a sample has its share of the mutants, and their order is random but the same", () => {
  const mutants = Array.from({ length: 2000 }, (_, index) => ({ id: String(index) }));
  const sampled = mutants.filter(({ id }) => isSampled(id, 20)).length;
  expect(sampled).toBeGreaterThan(60);
  expect(sampled).toBeLessThan(140);
  const order = inRandomOrder(mutants);
  expect(order).toEqual(inRandomOrder(mutants.toReversed()));
  expect(order.toSorted((a, b) => Number(a.id) - Number(b.id))).toEqual(mutants);
  expect(order).not.toEqual(mutants);
});

test("if everything was tried, the score is the share of detected mutants", () => {
  const { score, margin } = mutationScore({
    executed: { all: 300, tried: 300, detected: 240 },
    left: { tried: 60, detected: 30 },
    unexecuted: { all: 100, tried: 100, detected: 60 },
  });
  expect(score).toBeCloseTo((270 + 60) / 400);
  // Of 400 at random with this share.
  expect(margin).toBeCloseTo(1.96 * Math.sqrt((0.825 * 0.175) / 400), 2);
});

test("a smaller part of the second stage makes the interval wider, and not the score another", () => {
  const executed = { all: 9000, tried: 200, detected: 150 };
  const unexecuted = { all: 1000, tried: 20, detected: 10 };
  const all = mutationScore({ executed, left: { tried: 50, detected: 30 }, unexecuted });
  const some = mutationScore({ executed, left: { tried: 10, detected: 6 }, unexecuted });
  expect(all.score).toBeCloseTo(0.9 * (1 - 0.25 * 0.4) + 0.1 * 0.5);
  expect(some.score).toBeCloseTo(all.score);
  expect(some.margin).toBeGreaterThan(all.margin);
});

test("without a second stage, what unit tests leave counts as undetected", () => {
  const { score } = mutationScore({
    executed: { all: 900, tried: 90, detected: 60 },
    left: { tried: 30, detected: 0 },
    unexecuted: { all: 100, tried: 100, detected: 0 },
  });
  expect(score).toBeCloseTo(0.6);
});

test("few mutants with the same outcome leave a margin", () => {
  const few = { all: 100, tried: 5, detected: 5 };
  const { score, margin } = mutationScore({
    executed: few,
    left: { tried: 0, detected: 0 },
    unexecuted: { all: 0, tried: 0, detected: 0 },
  });
  expect(score).toBe(1);
  expect(margin).toBeGreaterThan(0.1);
});
