/**
 * Registered documents, around the lookup in the database; test/api/trustedDocuments.test.ts registers and requests
 * them.
 */
import { expect, test } from "@jest/globals";
import { partyOf } from "../../src/admission/party.ts";
import { createTrustedDocuments, noTrustedDocuments } from "../../src/http/trustedDocuments.ts";

const party = partyOf(null, "192.0.2.1");
const received = (documentId?: string, query?: string) =>
  ({ documentId, query, variables: { a: 1 }, operationName: "A" }) as never;
const refusal = (code: string, field: string, message: RegExp) => ({
  code,
  message: expect.stringMatching(message),
  extensions: { field },
});
const notFound = refusal(
  "NOT_FOUND",
  "documentId",
  /^No document is registered under this id\. Register the documents/,
);

/** A library of documents that records the requested ids. */
function library(texts: Record<string, string>, only = false) {
  const lookUps: string[] = [];
  const find = async (id: string) => {
    lookUps.push(id);
    return texts[id];
  };
  return { documents: createTrustedDocuments({ find, only }), lookUps };
}

test("an id is replaced by its document, with all other properties kept, and is looked up once", async () => {
  const { documents, lookUps } = library({ a: "{ ok }", b: "{ other }" });
  const answered = { query: "{ ok }", variables: { a: 1 }, operationName: "A" };
  expect(await documents.resolve(received("a"), party)).toEqual(answered);
  expect(await documents.resolve(received("a"), party)).toEqual(answered);
  expect(await documents.resolve(received("b"), party)).toEqual({ ...answered, query: "{ other }" });
  expect(lookUps).toEqual(["a", "b"]);
});

test("concurrent requests for an id are one look-up", async () => {
  const { documents, lookUps } = library({ a: "{ ok }" });
  const answers = await Promise.all([1, 2, 3].map(() => documents.resolve(received("a"), party)));
  expect(answers.map(({ query }) => query)).toEqual(["{ ok }", "{ ok }", "{ ok }"]);
  expect(lookUps).toEqual(["a"]);
});

test("an unregistered id is looked up each time, because it may have been registered since", async () => {
  const texts: Record<string, string> = {};
  const { documents, lookUps } = library(texts);
  await expect(documents.resolve(received("a"), party)).rejects.toMatchObject(notFound);
  texts["a"] = "{ ok }";
  expect(await documents.resolve(received("a"), party)).toMatchObject({ query: "{ ok }" });
  expect(lookUps).toEqual(["a", "a"]);
});

test("a failed look-up is not cached", async () => {
  let works = false;
  const find = async () => {
    if (!works) throw new Error("away");
    return "{ ok }";
  };
  const documents = createTrustedDocuments({ find, only: false });
  await expect(documents.resolve(received("a"), party)).rejects.toThrow("away");
  works = true;
  expect(await documents.resolve(received("a"), party)).toMatchObject({ query: "{ ok }" });
});

test.each(["", "a b", "ä", "a".repeat(129), " a", "a\n"])(
  "%j cannot be an id, and is not looked up",
  async (id) => {
    const { documents, lookUps } = library({ [id]: "{ ok }" });
    await expect(documents.resolve(received(id), party)).rejects.toMatchObject(notFound);
    await expect(documents.resolve(received(), party)).rejects.toMatchObject(notFound);
    expect(lookUps).toEqual([]);
  },
);

test("the longest id, with each kind of character, is looked up", async () => {
  const id = `sha256:A-z_${"0".repeat(117)}`;
  expect(id).toHaveLength(128);
  expect(await library({ [id]: "{ ok }" }).documents.resolve(received(id), party)).toMatchObject({
    query: "{ ok }",
  });
});

test("a document as text is accepted, unless only registered ones are permitted", async () => {
  const open = library({});
  const answered = { query: "{ ok }", variables: { a: 1 }, operationName: "A" };
  expect(await open.documents.resolve(received(undefined, "{ ok }"), party)).toEqual(answered);
  expect(await noTrustedDocuments.resolve(received("a", "{ ok }"), party)).toEqual(answered);
  await expect(noTrustedDocuments.resolve(received("a"), party)).rejects.toMatchObject(notFound);
  const closed = library({ a: "{ ok }" }, true);
  await expect(closed.documents.resolve(received("a", "{ ok }"), party)).rejects.toMatchObject(
    refusal("FORBIDDEN", "query", /^This service only accepts registered documents: send the id/),
  );
  expect(await closed.documents.resolve(received("a"), party)).toEqual(answered);
  expect([...open.lookUps, ...closed.lookUps]).toEqual(["a"]);
});

test("up to 8,000,000 characters are cached; beyond that, the oldest documents are looked up again", async () => {
  const half = "x".repeat(4_000_000);
  const { documents, lookUps } = library({ a: half, b: half, c: "y" });
  for (const id of ["a", "b", "a", "b"]) await documents.resolve(received(id), party);
  expect(lookUps).toEqual(["a", "b"]);
  await documents.resolve(received("c"), party);
  for (const id of ["b", "c"]) await documents.resolve(received(id), party);
  expect(lookUps).toEqual(["a", "b", "c"]);
  await documents.resolve(received("a"), party);
  expect(lookUps).toEqual(["a", "b", "c", "a"]);
  // The second was removed for it.
  await documents.resolve(received("c"), party);
  await documents.resolve(received("b"), party);
  expect(lookUps).toEqual(["a", "b", "c", "a", "b"]);
});
