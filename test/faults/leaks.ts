import { expect } from "@jest/globals";
import type { Answer } from "../harness/api.ts";

/** Words of the inside: PostgreSQL's, the driver's, the schema's, stacks and addresses. */
const inside =
  /app_(public|hidden|private)|plat_\w|pg_|postgres|relation|constraint|trigger|sqlstate|terminat|ECONN|socket|127\.0\.0\.1|node_modules|\.ts\b|\bat \w+ \(/i;

/** A failure of ours as the caller may see it: coded, with the request id, and nothing of the inside. */
export function expectMasked(answer: Answer): void {
  expect(answer.errors?.length).toBeGreaterThan(0);
  for (const { message, extensions } of answer.errors!) {
    const { code, requestId: _, key, ...others } = extensions;
    expect(["INTERNAL", "UNAVAILABLE"]).toContain(code);
    // The sentence of the catalogue, as each error says.
    expect(key).toMatch(/^\w+$/);
    expect(others).toEqual(code === "UNAVAILABLE" ? { retryAfterSeconds: 5, parameters: ["5"] } : {});
    expect(extensions.requestId).toBe(answer.headers["x-request-id"]);
    expect(message).not.toMatch(inside);
  }
}
