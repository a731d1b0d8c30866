/** Limits on event streams: their numbers, refusals, and that each slot is released once. */
import { expect, test } from "@jest/globals";
import { StreamCounts } from "../../src/live/streamLimits.ts";

const many = { total: 9, ofOrganization: 9, ofViewer: 9, ofAddress: 9 };
const owner = { userId: "u1", organizationId: "o1", ip: "192.0.2.1" };
const other = { userId: "u2", organizationId: "o2", ip: "192.0.2.2" };
const refused = (counts: StreamCounts, of = owner): unknown => {
  try {
    return counts.take(of);
  } catch (error) {
    return error;
  }
};

test.each([
  [
    "ofViewer",
    { ...other, userId: "u1" },
    "You have reached the limit of 2 event streams; close some, and try again in 10 s.",
  ],
  [
    "ofAddress",
    { ...other, ip: "192.0.2.1" },
    "Your network has reached the limit of 2 event streams; close some, and try again in 10 s.",
  ],
  [
    "ofOrganization",
    { ...other, organizationId: "o1" },
    "The organization has reached the limit of 2 event streams; try again in 10 s.",
  ],
] as const)("%s: one more is refused to whoever shares it, and to nobody else", (limit, sharing, message) => {
  const counts = new StreamCounts({ ...many, [limit]: 2 });
  const first = counts.take(owner);
  const second = counts.take(sharing);
  expect(refused(counts)).toMatchObject({
    code: "RATE_LIMITED",
    message,
    extensions: { limit: 2, retryAfterSeconds: 10 },
  });
  expect(refused(counts, other)).toBeInstanceOf(Function);
  // Releasing twice frees one slot.
  first();
  first();
  expect(refused(counts)).toBeInstanceOf(Function);
  expect(refused(counts, sharing)).toMatchObject({ code: "RATE_LIMITED" });
  second();
  expect(refused(counts, sharing)).toBeInstanceOf(Function);
});

test("the process has a total number of slots", () => {
  const counts = new StreamCounts({ ...many, total: 1 });
  const end = counts.take(owner);
  expect(refused(counts, other)).toMatchObject({
    code: "UNAVAILABLE",
    message: "The limit of event streams of this process is reached; try again in 10 s.",
    extensions: { retryAfterSeconds: 10 },
  });
  end();
  // A refused request has taken no slot.
  counts.take(other)();
  expect(refused(counts)).toBeInstanceOf(Function);
});
