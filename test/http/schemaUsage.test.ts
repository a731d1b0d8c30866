/** Which uses of the schema are recorded, of whom, and how often; without a database. */
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { buildSchema, GraphQLError, parse } from "postgraphile/graphql";
import { KnownDocument } from "../../src/compiled/knownDocuments.ts";
import type { Claims } from "../../src/database/claims.ts";
import { schemaCoordinates, SchemaUsage } from "../../src/http/schemaUsage.ts";
import { until } from "../harness/until.ts";
import { scriptedDatabase } from "./scriptedDatabase.ts";

beforeEach(
  () =>
    void jest.useFakeTimers({
      now: new Date("2026-05-01T12:00:00Z"),
      doNotFake: ["nextTick", "setImmediate", "queueMicrotask"],
    }),
);
afterEach(() => void jest.useRealTimers());

const schema = buildSchema(/* GraphQL */ `
  type Query {
    leads(filter: LeadsFilter, sort: [LeadSort!]): [Lead!]!
    named: Named
  }
  type Lead implements Named {
    name(short: Boolean): String
    mood: Mood
  }
  interface Named {
    name(short: Boolean): String
  }
  input LeadsFilter {
    mood: Mood
    deep: LeadsFilter
  }
  enum Mood {
    GOOD
  }
  enum LeadSort {
    NAME
  }
  directive @own(reason: String) on FIELD
`);

test("coordinates are those of fields, arguments, literals, and of types of variables and fragments", () => {
  const document = parse(`query ($mood: Mood, $short: Boolean!) {
    __typename
    __schema { queryType { name } }
    leads(filter: { deep: { mood: GOOD } }, sort: [NAME]) { ...Named mood @own(reason: "a") }
    named { ... on Lead { mood } name(short: $short) }
  }
  fragment Named on Lead { name }`);
  expect(schemaCoordinates(schema, document).toSorted()).toEqual([
    "Boolean",
    "Lead",
    "Lead.mood",
    "Lead.name",
    "LeadSort.NAME",
    "LeadsFilter.deep",
    "LeadsFilter.mood",
    "Mood",
    "Mood.GOOD",
    "Named.name",
    "Named.name(short:)",
    "Query.leads",
    "Query.leads(filter:)",
    "Query.leads(sort:)",
    "Query.named",
  ]);
});

const known = (text: string) => new KnownDocument(text, { document: parse(text) });
const claims = (userId: string | null, organizationId?: string): Claims =>
  ({ userId, organizationId }) as unknown as Claims;

/** A recorder, and the uses that it has written, by statement. */
function record({ failing = false, delayMs }: { failing?: boolean; delayMs?: number } = {}) {
  const database = scriptedDatabase(failing ? [[/note_schema_usage/, new Error("No database.")]] : []);
  const warnings: object[] = [];
  const log = { warn: (fields: object) => void warnings.push(fields) } as never;
  const usage = new SchemaUsage({ schema, pool: database.pool, log, delayMs });
  const written = () => database.queries.map(([, values]) => JSON.parse(String(values)) as object[]);
  return { usage, written, warnings, texts: () => database.queries.map(([text]) => text) };
}

test("a use is written once a day for each document, user and organization, a minute after the first", async () => {
  const { usage, written, texts } = record();
  const [one, other] = [known("{ leads { name } }"), known("{ named { name } }")];
  usage.note(one, claims("1"));
  usage.note(one, claims("1"));
  usage.note(one, claims("1", "7"));
  usage.note(one, claims("2"));
  usage.note(other, claims("1"));
  await jest.advanceTimersByTimeAsync(59_999);
  expect(written()).toEqual([]);
  await jest.advanceTimersByTimeAsync(1);
  // It is still being written: each document gives way to others.
  await until(() => written().length === 1);
  const ofOne = ["Query.leads", "Lead.name"];
  expect(written()).toEqual([
    [
      { user_id: "1", organization_id: null, coordinates: ofOne },
      { user_id: "1", organization_id: "7", coordinates: ofOne },
      { user_id: "2", organization_id: null, coordinates: ofOne },
      { user_id: "1", organization_id: null, coordinates: ["Query.named", "Named.name"] },
    ],
  ]);
  expect(texts()).toEqual(["select app_private.note_schema_usage($1)"]);
  usage.note(one, claims("1"));
  await usage.write();
  expect(written()).toHaveLength(1);
  jest.setSystemTime(new Date("2026-05-02T00:00:00Z"));
  await usage.write();
  usage.note(one, claims("1"));
  await usage.write();
  expect(written().slice(1)).toEqual([[{ user_id: "1", organization_id: null, coordinates: ofOne }]]);
});

test("visitors and documents that are refused leave nothing", async () => {
  const { usage, written } = record();
  usage.note(known("{ leads { name } }"), claims(null));
  usage.note(new KnownDocument("{", { errors: [new GraphQLError("Refused.")] }), claims("1"));
  await usage.write();
  expect(written()).toEqual([]);
  expect(jest.getTimerCount()).toBe(0);
});

test("at most 500 uses wait, and 50 are written at once; one beyond is recorded when it occurs again", async () => {
  const { usage, written } = record();
  const document = known("{ leads { name } }");
  for (let user = 0; user < 501; user += 1) usage.note(document, claims(String(user)));
  await usage.write();
  expect(written().map(({ length }) => length)).toEqual(Array.from({ length: 10 }, () => 50));
  usage.note(document, claims("499"));
  usage.note(document, claims("500"));
  await usage.write();
  expect(written().slice(10)).toMatchObject([[{ user_id: "500" }]]);
});

test("a thousand users of a document are remembered", async () => {
  const { usage, written } = record();
  const document = known("{ leads { name } }");
  for (let user = 0; user < 1_000; user += 1) {
    if (user === 500) await usage.write();
    usage.note(document, claims(String(user)));
  }
  await usage.write();
  expect(written().flat()).toHaveLength(1_000);
  // They are forgotten with one more.
  usage.note(document, claims("1000"));
  usage.note(document, claims("0"));
  await usage.write();
  expect(written().slice(20)).toMatchObject([[{ user_id: "1000" }, { user_id: "0" }]]);
});

test("a failure is logged, and these uses are not tried again that day", async () => {
  const { usage, written, warnings } = record({ failing: true, delayMs: 5 });
  const document = known("{ leads { name } }");
  usage.note(document, claims("1"));
  await jest.advanceTimersByTimeAsync(5);
  await usage.write();
  expect(written()).toHaveLength(1);
  expect(warnings).toEqual([{ event: "graphql.usage_lost", err: new Error("No database.") }]);
  usage.note(document, claims("1"));
  await usage.write();
  expect(written()).toHaveLength(1);
});
