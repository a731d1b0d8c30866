/** What a client accepts, as far as parts.test.ts does not ask: events, headers known from before, and refusals. */
import { expect, test } from "@jest/globals";
import type { Request } from "express";
import { acceptJson, negotiatedType, refusalType } from "../../src/http/accept.ts";
import { beginRequest, type RequestState } from "../../src/http/requestState.ts";

const json = "application/json";
const graphql = "application/graphql-response+json";
const events = "text/event-stream";
/** A header of this length that accepts JSON. */
const ofLength = (length: number) => `${json}, text/`.padEnd(length, "x");

test.each<[string | undefined, string | undefined]>([
  [undefined, json],
  ["", json],
  [graphql, graphql],
  ["*/*", json],
  ["text/html", undefined],
  [events, undefined],
  [`${json}, ${events}`, undefined],
  [`${json},TEXT/Event-Stream;q=0.5, */*`, undefined],
  [`${json}, ${events} , */*`, undefined],
  [`${json}, ${events}s`, json],
  [`${json}, x${events}`, json],
  [ofLength(200), json],
  [ofLength(201), undefined],
])("the type for the header %j can be known in advance: %s", (header, type) => {
  for (let n = 0; n < 2; n += 1) expect(negotiatedType(header)).toBe(type);
});

test("more different headers than are remembered are negotiated too", () => {
  for (let n = 0; n < 500; n += 1) expect(negotiatedType(`${graphql}, text/x${n}`)).toBe(graphql);
  expect(negotiatedType(`${graphql}, text/x0`)).toBe(graphql);
});

test("a refusal is JSON for a client that accepts neither", () => {
  expect([graphql, json, "text/html", undefined].map(refusalType)).toEqual([graphql, json, json, json]);
});

async function negotiated(accept: string | undefined) {
  const request = { headers: { accept } } as unknown as Request;
  const state = { takesEvents: "no" } as RequestState;
  beginRequest(request, state);
  const passed = await new Promise((resolve) => void acceptJson(request, {} as never, resolve));
  return { passed, accept: request.headers.accept, takesEvents: state.takesEvents };
}

test.each<[string | undefined, string, RequestState["takesEvents"]]>([
  [undefined, json, "no"],
  [`${graphql}, ${json};q=0.5`, graphql, "no"],
  [events, graphql, "only"],
  [`${events}, text/html`, graphql, "only"],
  [`${events}, ${json}`, json, "also"],
  [`${events}, */*`, json, "also"],
])("the header %j becomes %s", async (accept, type, takesEvents) => {
  expect(await negotiated(accept)).toEqual({ passed: undefined, accept: type, takesEvents });
});

test("a client that accepts neither JSON nor events is refused, its header left as it is", async () => {
  const { passed, ...rest } = await negotiated("text/html");
  expect(passed).toMatchObject({
    code: "BAD_USER_INPUT",
    message: `Answers come as ${graphql} or ${json}; the Accept header names neither.`,
    status: 406,
  });
  expect(rest).toEqual({ accept: "text/html", takesEvents: "no" });
});
