/** When a client that has a response already gets 304, and with which headers. */
import { expect, test } from "@jest/globals";
import type { Request, Response } from "express";
import { Positions } from "../../src/database/position.ts";
import { answerUnchanged, wantsTag } from "../../src/http/conditionalRequests.ts";
import { beginRequest, type RequestState } from "../../src/http/requestState.ts";

const positions = new Positions("1");
/** At 0/20. */
const tag = { text: 'W/"here"', reached: 32n };

function ask(header: string | undefined, notBefore?: string, userId: string | null = "1") {
  const request = { method: "POST", headers: { "if-none-match": header } } as unknown as Request;
  beginRequest(request, { claims: { userId } } as unknown as RequestState);
  const headers: Record<string, string> = {};
  let status: number | undefined;
  const response = {
    setHeader: (name: string, value: string) => void (headers[name] = value),
    writeHead: (code: number) => ({ end: () => void (status = code) }),
  } as unknown as Response;
  const isAnswered = answerUnchanged(request, response, tag, { positions, notBefore });
  return { isAnswered, status, headers };
}

const unchanged = {
  isAnswered: true,
  status: 304,
  headers: {
    ETag: tag.text,
    "Cache-Control": "private, no-cache",
    Vary: "Accept, Accept-Encoding, Accept-Language, Authorization",
    "Plat-Position": positions.write(32n),
  },
};
const changed = { isAnswered: false, status: undefined, headers: {} };

test("a client that has the response gets 304 with its tag and position", () => {
  expect(ask(tag.text)).toEqual(unchanged);
  expect(ask(`"other", ${tag.text}`)).toEqual(unchanged);
  expect(ask("*")).toEqual(unchanged);
  for (const header of [undefined, 'W/"other"', "here"]) expect(ask(header)).toEqual(changed);
});

test("what visitors get may be kept by shared caches", () => {
  expect(ask(tag.text, undefined, null).headers["Cache-Control"]).toBe("public, no-cache");
});

test("a response counts as current only if it has reached the position that is asked for", () => {
  for (const reached of ["0/1F", "0/20"]) expect(ask(tag.text, reached)).toEqual(unchanged);
  for (const later of ["0/21", "1/0"]) expect(ask(tag.text, later)).toEqual(changed);
});

test("reading by GET always has a tag, another request only if it asks", () => {
  const request = (method: string, headers = {}) => ({ method, headers }) as unknown as Request;
  expect(wantsTag(request("GET"))).toBe(true);
  expect(wantsTag(request("POST"))).toBe(false);
  expect(wantsTag(request("POST", { "if-none-match": "" }))).toBe(true);
});
