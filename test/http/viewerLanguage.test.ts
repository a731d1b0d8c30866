/** In which language a viewer is answered, and how long the service waits to know it. */
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import type { Request } from "express";
import { beginRequest, type RequestState } from "../../src/http/requestState.ts";
import { viewerLanguage, viewerLanguageOnce, type LanguageOfUser } from "../../src/http/viewerLanguage.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

function request(userId: string | null | undefined, accepted?: string): Request {
  const found = { headers: { "accept-language": accepted } } as unknown as Request;
  const claims = userId === undefined ? undefined : { userId };
  beginRequest(found, { claims } as unknown as RequestState);
  return found;
}
const never: LanguageOfUser = () => Promise.reject(new Error("Nobody is asked."));

test("visitors get at once what their header accepts, otherwise English", () => {
  for (const userId of [null, undefined]) {
    expect(viewerLanguage(request(userId, "de"), never)).toBe("de");
    expect(viewerLanguage(request(userId, "xx"), never)).toBe("en");
    expect(viewerLanguage(request(userId), never)).toBe("en");
  }
  expect(viewerLanguage(request("u1", "de"))).toBe("de");
});

test("a user gets the chosen language, otherwise that of the header", async () => {
  const users: string[] = [];
  const choose =
    (chosen: string | null | undefined): LanguageOfUser =>
    (userId) => {
      users.push(userId);
      return Promise.resolve(chosen);
    };
  expect(await viewerLanguage(request("u1", "en"), choose("de"))).toBe("de");
  for (const none of [null, undefined, "xx"])
    expect(await viewerLanguage(request("u1", "de"), choose(none))).toBe("de");
  expect(users).toEqual(["u1", "u1", "u1", "u1"]);
  expect(await viewerLanguage(request("u1", "de"), never)).toBe("de");
  expect(jest.getTimerCount()).toBe(0);
});

test("the choice is awaited for a second", async () => {
  const chosen = Promise.withResolvers<string>();
  let found: unknown;
  const waiting = Promise.resolve(viewerLanguage(request("u1", "de"), () => chosen.promise));
  void waiting.then((language) => (found = language));
  await jest.advanceTimersByTimeAsync(999);
  expect(found).toBeUndefined();
  await jest.advanceTimersByTimeAsync(1);
  expect(found).toBe("de");
  chosen.resolve("en");
  expect(await waiting).toBe("de");
  expect(jest.getTimerCount()).toBe(0);
});

test("a request asks once", async () => {
  let asked = 0;
  const language = viewerLanguageOnce(request("u1"), async () => (++asked, "de"));
  expect(asked).toBe(0);
  expect(await Promise.all([language(), language()])).toEqual(["de", "de"]);
  expect(await language()).toBe("de");
  expect(asked).toBe(1);
});
