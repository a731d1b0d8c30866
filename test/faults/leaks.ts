import { expect } from "@jest/globals";
import type { Answer } from "../harness/api.ts";

/** Internal terms of PostgreSQL, the driver and the schema, stack traces and addresses. */
const inside =
  /app_(public|hidden|private)|plat_\w|pg_|postgres|relation|constraint|trigger|sqlstate|terminat|ECONN|socket|127\.0\.0\.1|node_modules|\.ts\b|\bat \w+ \(/i;

/** An internal error as clients may see it: with code and request id, and without internal terms. */
export function expectMasked(answer: Answer): void {
  expect(answer.errors?.length).toBeGreaterThan(0);
  for (const { message, extensions } of answer.errors!) {
    const { code, requestId: _, key, ...others } = extensions;
    expect(["INTERNAL", "UNAVAILABLE"]).toContain(code);
    // The message from the catalogue, like every error.
    expect(key).toMatch(/^\w+$/);
    expect(others).toEqual(code === "UNAVAILABLE" ? { retryAfterSeconds: 5, parameters: ["5"] } : {});
    expect(extensions.requestId).toBe(answer.headers["x-request-id"]);
    expect(message).not.toMatch(inside);
  }
}
