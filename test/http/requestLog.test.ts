/** The line of a request in the log: what it contains, and what it never does. */
import { expect, test } from "@jest/globals";
import { pathOf, requestLog } from "../../src/http/requestLog.ts";
import { beginRequest, type RequestState } from "../../src/http/requestState.ts";

const own = () => ({
  id: "r1",
  startedAt: process.hrtime.bigint() - 5_000_000_000n,
  context: { requestId: "r1", operation: undefined as string | undefined, role: undefined },
  operationName: undefined as string | undefined,
  operationType: undefined as string | undefined,
  claims: undefined as RequestState["claims"],
  errorCodes: new Set<string>(),
});

function lineOf(
  request: { method?: string; url?: string; originalUrl?: string },
  state: Partial<ReturnType<typeof own>> = {},
  response: object = { statusCode: 200, writableFinished: true },
) {
  const written: [Record<string, unknown>, string][] = [];
  const log = { info: (...line: [Record<string, unknown>, string]) => void written.push(line) };
  beginRequest(request as never, { ...own(), ...state } as unknown as RequestState);
  requestLog(log as never)(request as never, response as never);
  expect(written).toHaveLength(1);
  return written[0]![0];
}

test("a complete request of a viewer is logged with its operation, without its query string", () => {
  const line = lineOf(
    { method: "POST", url: "/graphql?token=secret" },
    {
      claims: { userId: "u1" },
      operationName: "Leads",
      operationType: "query",
      errorCodes: new Set(["A", "B"]),
    },
    { statusCode: 207, writableFinished: true },
  );
  expect(line).toEqual({
    requestId: "r1",
    event: "http.request",
    method: "POST",
    path: "/graphql",
    status: 207,
    durationMs: expect.any(Number),
    operationName: "Leads",
    operationType: "query",
    userId: "u1",
    errorCodes: ["A", "B"],
    aborted: undefined,
  });
  // In milliseconds, since the request began five seconds ago.
  expect(line["durationMs"]).toBeGreaterThanOrEqual(5_000);
  expect(line["durationMs"]).toBeLessThan(5_000_000);
});

test("of a visitor whose request broke off, little is known", () => {
  const response = { statusCode: 200, writableFinished: false };
  for (const claims of [undefined, { userId: null }]) {
    const line = lineOf({ method: "GET", url: "/healthz" }, { claims }, response);
    expect(line).toMatchObject({ path: "/healthz", aborted: true });
    expect([line["userId"], line["errorCodes"], line["operationName"], line["operationType"]]).toEqual(
      Array(4).fill(undefined),
    );
  }
});

test("an operation without a name has the label of its fields", () => {
  const context = { requestId: "r1", operation: "leads, projects", role: undefined };
  expect(lineOf({ url: "/graphql" }, { context })["operationName"]).toBe("leads, projects");
  expect(lineOf({ url: "/graphql" }, { context, operationName: "A" })["operationName"]).toBe("A");
});

test.each([
  ["/calendars/abc.ics", "/calendars/…"],
  ["/confirm/abc", "/confirm/…"],
  ["/sign/abc/more", "/sign/…"],
  ["/stop-email-change/abc?a=b", "/stop-email-change/…"],
  ["/unsubscribe/abc", "/unsubscribe/…"],
  ["/unsubscribe", "/unsubscribe"],
  ["/files/sign/abc", "/files/sign/abc"],
])("of the path %s, %s is logged", (url, path) => {
  expect(lineOf({ url })["path"]).toBe(path);
});

test("the path is the one that was sent, not that of a router", () => {
  const path = (url: string, originalUrl?: string) =>
    pathOf({ url, ...(originalUrl !== undefined && { originalUrl }) } as never);
  expect([path("/a"), path("/a?b"), path("/?b", "/a?c=/d?e"), path("?a")]).toEqual(["/a", "/a", "/a", ""]);
});
