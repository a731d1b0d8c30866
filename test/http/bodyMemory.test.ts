/** How much memory a request body may take, and for whom it counts. */
import { EventEmitter } from "node:events";
import { afterEach, expect, test } from "@jest/globals";
import { requestBodies, SMALL_BODY } from "../../src/admission/semaphores.ts";
import { admitBody, bodyLimits } from "../../src/http/body.ts";

const limit = bodyLimits.anonymous;
const open: EventEmitter[] = [];

afterEach(() => {
  for (const response of open.splice(0)) response.emit("close");
});

/** The bytes that a body with these headers may have, and those that it holds. */
async function admitted(
  headers: Record<string, string>,
  of: { userId: string | null; limit: number } = { userId: null, limit },
  ip = "192.0.2.1",
) {
  const response = Object.assign(new EventEmitter(), { closed: false });
  open.push(response);
  const before = requestBodies.numbers.held;
  const bytes = await admitBody({ headers, ip } as never, response as never, of);
  return { bytes, held: requestBodies.numbers.held - before };
}

test.each<[string, Record<string, string>, number]>([
  ["its announced length", { "content-length": "500000" }, 500_000],
  ["its announced length, as it is", { "content-length": "500000", "content-encoding": "Identity" }, 500_000],
  [
    "its announced length, without an encoding",
    { "content-length": "500000", "content-encoding": "" },
    500_000,
  ],
  ["exactly the limit", { "content-length": String(limit) }, limit],
  ["an unknown length", {}, limit],
  ["gzip", { "content-length": "100", "content-encoding": "gzip" }, limit],
  ["deflate", { "content-length": "100", "content-encoding": "DEFLATE" }, limit],
  ["br", { "content-length": "100", "content-encoding": "br" }, limit],
  ["zstd", { "content-length": "100", "content-encoding": "zstd" }, limit],
])("a body of %s counts as what it can become", async (_, headers, bytes) => {
  expect(await admitted(headers)).toEqual({ bytes, held: bytes });
});

test.each<[string, Record<string, string>, number]>([
  ["is small", { "content-length": String(SMALL_BODY) }, SMALL_BODY],
  ["is empty", { "content-length": "0" }, 0],
  ["is larger than allowed", { "content-length": String(limit + 1) }, 0],
  ["is packed and larger than allowed", { "content-length": String(limit + 1), "content-encoding": "br" }, 0],
  ["has an unknown encoding", { "content-length": "500000", "content-encoding": "compress" }, 0],
  ["has two encodings", { "content-length": "500000", "content-encoding": "gzip, identity" }, 0],
  ["has almost a known one", { "content-length": "500000", "content-encoding": "xgzip" }, 0],
  ["has almost no encoding", { "content-length": "500000", "content-encoding": "identity2" }, 0],
  ["has nearly no encoding", { "content-length": "500000", "content-encoding": "nonidentity" }, 0],
])("a body that %s does not count", async (_, headers, bytes) => {
  expect(await admitted(headers)).toEqual({ bytes, held: 0 });
});

test("a body that is one byte larger than a small one counts until its request is answered", async () => {
  const found = await admitted({ "content-length": String(SMALL_BODY + 1) });
  expect(found).toEqual({ bytes: SMALL_BODY + 1, held: SMALL_BODY + 1 });
  open.at(-1)!.emit("close");
  expect(requestBodies.numbers.held).toBe(0);
});

test("the limit of a viewer is larger, and a body counts for them, not for their network", async () => {
  const viewer = { userId: "u1", limit: bodyLimits.signedIn };
  const length = { "content-length": String(bodyLimits.signedIn) };
  expect(await admitted(length, viewer)).toEqual({ bytes: 10_000_000, held: 10_000_000 });
  expect((await admitted(length, viewer)).held).toBe(10_000_000);
  // The third one of the same viewer waits, also from another network, but not one of another viewer.
  let isAdmitted = false;
  const third = admitted(length, viewer, "198.51.100.1").then((found) => ((isAdmitted = true), found));
  expect((await admitted(length, { ...viewer, userId: "u2" })).held).toBe(10_000_000);
  expect(isAdmitted).toBe(false);
  open[0]!.emit("close");
  expect(await third).toMatchObject({ bytes: 10_000_000 });
});
