/**
 * Consistency within an organization: clients concurrently append tags to several leads, and read several leads. Each
 * list is a consistent snapshot that includes everything acknowledged before the request, and nothing is lost, in
 * planned and compiled queries.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { long, testWithSeeds } from "../harness/seeds.ts";
import { anomalies, type Transaction } from "./listAppend.ts";

const append = (sentAt: number, answeredAt: number, appended: Record<string, string>): Transaction => ({
  sentAt,
  answeredAt,
  appended: new Map(Object.entries(appended)),
  read: new Map(),
});
const read = (sentAt: number, answeredAt: number, lists: Record<string, string[]>): Transaction => ({
  sentAt,
  answeredAt,
  appended: new Map(),
  read: new Map(Object.entries(lists)),
});

test("the checker finds its anomalies, and no others", () => {
  const one = append(0, 10, { a: "a1" });
  const two = append(0, 10, { a: "a2", b: "b2" });
  const end = read(90, 99, { a: ["a1", "a2"], b: ["b2"] });
  const early = read(5, 8, { a: ["a1"], b: [] });
  expect(anomalies([one, two, early, end])).toEqual([]);
  expect(anomalies([one, two, read(90, 99, { a: ["a2"], b: ["b2"] })])).toEqual(["a has lost a1."]);
  expect(anomalies([one, two, read(1, 2, { a: ["a2"] }), end])).toEqual(["a was read as a2 and as a1 a2."]);
  expect(anomalies([one, read(90, 99, { a: ["a1", "a9"] })])).toEqual([
    "a has a9, which nobody was told to have appended.",
  ]);
  expect(anomalies([one, read(90, 99, { a: ["a1", "a1"] })])).toEqual(["a has a value twice: a1 a1."]);
  // A partial append.
  const torn = read(5, 8, { a: ["a1"], b: ["b2"] });
  expect(anomalies([one, two, torn, end])).toEqual([expect.stringMatching(/^A cycle: /)]);
  // A stale read: without an acknowledged append.
  const stale = read(20, 30, { a: ["a1"], b: [] });
  expect(anomalies([one, two, stale, end])).toEqual([expect.stringMatching(/^A cycle: /)]);
  expect(anomalies([one, two, stale, end], { realTime: false })).toEqual([]);
  // Two reads that saw two appends in different orders.
  const three = append(0, 10, { c: "c3" });
  const last = read(90, 99, { b: ["b2"], a: ["a2"], c: ["c3"] });
  const left = read(0, 10, { a: ["a2"], c: [] });
  const right = read(0, 10, { a: [], c: ["c3"] });
  expect(anomalies([two, three, left, right, last])).toEqual([expect.stringMatching(/^A cycle: /)]);
});

let world: Portfolio;
beforeAll(async () => {
  world = await startPortfolio();
});
afterAll(() => world.stop());

/** Numbers from 0 to 1, equal for equal seeds. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const APPEND = `mutation ($ids: [ID!]!, $tag: String!) { updateLeads(input: { ids: $ids, addTags: [$tag] }) { updatedCount refusedCount } }`;
/** A lead has at most 50 tags. */
const MOST_VALUES = 40;

testWithSeeds(
  "appends and reads of many clients have an order that all of them saw",
  async (seed) => {
    const random = randomOf(seed);
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
    const { owen, ada, max, project } = world;
    const leads = await Promise.all(
      Array.from(
        { length: long ? 40 : 8 },
        async (_, n) => (await createLead(owen, { projectId: project.id, name: `List ${n}` })).id,
      ),
    );
    const room = new Map(leads.map((id) => [id, MOST_VALUES]));
    const history: Transaction[] = [];
    let values = 0;
    const appendTo = async (person: Person, ids: string[]) => {
      const tag = `v${(values += 1)}`;
      for (const id of ids) room.set(id, room.get(id)! - 1);
      const sentAt = performance.now();
      const { updateLeads } = await person.get(APPEND, { ids, tag });
      expect(updateLeads).toEqual({ updatedCount: ids.length, refusedCount: 0 });
      history.push(append(sentAt, performance.now(), Object.fromEntries(ids.map((id) => [id, tag]))));
    };
    const readAll = async (person: Person, text: string) => {
      const sentAt = performance.now();
      const { leads: found } = await person.get(text, { id: project.id });
      const lists = new Map<string, string[]>(
        found.map(({ id, tags }: { id: string; tags: string[] }) => [id, tags]),
      );
      history.push(
        read(sentAt, performance.now(), Object.fromEntries(leads.map((id) => [id, lists.get(id)!]))),
      );
    };
    const compiled = `query ($id: ID!) { leads(filter: { projectIds: [$id] }, first: 500) { id tags } } # ${seed}`;
    let planned = 0;
    await Promise.all(
      [owen, ada, max, owen, ada, max].map(async (person) => {
        for (let n = 0; n < (long ? 200 : 25); n += 1) {
          const ids = [...new Set([pick(leads), pick(leads), pick(leads)])].filter((id) => room.get(id)! > 0);
          if (random() < 0.5 && ids.length > 0) await appendTo(person, ids);
          else await readAll(person, random() < 0.5 ? compiled : `${compiled} ${(planned += 1)}`);
        }
      }),
    );
    await readAll(owen, compiled);
    expect(anomalies(history)).toEqual([]);
    expect(history.filter(({ read: { size } }) => size > 0).length).toBeGreaterThan(20);
  },
  120_000,
);
