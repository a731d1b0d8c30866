import { expect, test } from "@jest/globals";
import { flattenLogic } from "../../src/database/catalogExpressions.ts";

test.each([
  ["WHEN ((((a) OR (b)) OR (c)))", "WHEN (((a) OR (b) OR (c)))"],
  ["((a AND b) AND (c AND (d AND e)))", "(a AND b AND c AND d AND e)"],
  ["((a OR b) AND (c OR d))", "((a OR b) AND (c OR d))"],
  ["((x = ANY (a)) OR (f((p OR q)) OR r))", "((x = ANY (a)) OR f((p OR q)) OR r)"],
  ["(NOT (a OR b) OR c)", "(NOT (a OR b) OR c)"],
  ["((a = '((x OR y) OR z)') OR \"((p OR q) OR r)\")", "((a = '((x OR y) OR z)') OR \"((p OR q) OR r)\")"],
  ["((a = E'it\\'s (' OR b) OR c)", "(a = E'it\\'s (' OR b OR c)"],
])("%s", (expression, flat) => {
  expect(flattenLogic(expression)).toBe(flat);
});
