import { expect, test } from "@jest/globals";
import { Readable } from "node:stream";
import v8 from "node:v8";
import vm from "node:vm";
import { EventArchives, type ArchivedEvent } from "../../src/archives/index.ts";
import { packEvents, type PackedObject } from "../../src/archives/eventObjects.ts";
import { partyOf } from "../../src/admission/party.ts";
import type { FileStore } from "../../src/providers/files/index.ts";

// Objects of archived events in memory: how many are read at the same time, and how much of them is kept.

const lineOf = (sequence: number, characters: number) =>
  JSON.stringify({ sequence: String(sequence), data: "x".repeat(characters) }).replaceAll('":"', '" : "');
const ignored = { warn() {} };
const party = partyOf("a", undefined);

/** Objects with one event each, and a store that has them. */
async function storeWith(objects: readonly PackedObject[]) {
  let open = 0;
  const state = { most: 0, reads: 0 };
  const get = async (key: string) => {
    const { bytes } = objects.find(({ checksum }) => checksum === key)!;
    state.reads += 1;
    state.most = Math.max(state.most, ++open);
    await new Promise(setImmediate);
    open -= 1;
    return Readable.from([bytes]);
  };
  const events = objects.map(({ checksum, filesize }, index): ArchivedEvent => ({
    event_id: `event ${index + 1}`,
    sequence: String(index + 1),
    checksum,
    filesize,
  }));
  const read = async (lines: readonly { event_id: string; line: string }[]) =>
    lines.map(({ event_id, line }) => ({ event_id, data: JSON.parse(line).data.length, changes: null }));
  const find = async (ids: readonly string[]) => events.filter(({ event_id }) => ids.includes(event_id));
  return {
    store: { get } as unknown as FileStore,
    state,
    ids: events.map(({ event_id }) => event_id),
    find,
    read,
  };
}

test("a few objects are read at the same time, and the latest are kept up to a limit", async () => {
  const objects = await Promise.all(
    Array.from({ length: 12 }, (_, index) => packEvents(`${lineOf(index + 1, 4_000_000)}\n`)),
  );
  const { store, state, ids, find, read } = await storeWith(objects);
  const archives = new EventArchives(store, ignored);
  const contents = await archives.contents(ids, { party, find, read });
  expect([...contents.values()]).toEqual(ids.map(() => ({ data: 4_000_000, changes: null })));
  expect(state).toEqual({ most: 4, reads: 12 });
  expect(archives.kept).toBeGreaterThan(0);
  expect(archives.kept).toBeLessThanOrEqual(32_000_000);
  // The last one is in memory, the first one no longer.
  await archives.contents([ids.at(-1)!], { party, find, read });
  expect(state.reads).toBe(12);
  await archives.contents([ids[0]!], { party, find, read });
  expect(state.reads).toBe(13);
});

test("an object is not decompressed beyond a limit", async () => {
  const bomb = await packEvents(`${lineOf(1, 70_000_000)}\n`);
  const { store, find, read, ids } = await storeWith([bomb]);
  const contents = await new EventArchives(store, ignored).contents(ids, { party, find, read });
  expect(bomb.filesize).toBeLessThan(100_000);
  expect(contents.get(ids[0]!)).toMatchObject({ name: "ArchiveUnreadable" });
});

test("an event whose object was replaced meanwhile is read from the new one", async () => {
  const objects = await Promise.all([packEvents(`${lineOf(1, 10)}\n`), packEvents(`${lineOf(1, 20)}\n`)]);
  const { store, find, ids } = await storeWith(objects);
  let finds = 0;
  const [former, current] = await find(ids);
  const contents = await new EventArchives(store, ignored).contents(["event 1"], {
    party,
    find: async () => [{ ...(finds++ === 0 ? former! : current!), event_id: "event 1", sequence: "1" }],
    read: async (lines) =>
      lines
        .filter(({ checksum }) => checksum === current!.checksum)
        .map(({ event_id, line }) => ({ event_id, data: JSON.parse(line).data.length, changes: null })),
  });
  expect(contents.get("event 1")).toEqual({ data: 20, changes: null });
  expect(finds).toBe(2);
});

test("the lines that are read do not keep their objects in memory", async () => {
  v8.setFlagsFromString("--expose-gc");
  const collect = vm.runInNewContext("gc") as () => void;
  const filler = "x".repeat(4_000_000);
  const { store, find, ids } = await storeWith(
    await Promise.all(
      Array.from({ length: 30 }, (_, index) => packEvents(`${lineOf(index + 1, 100)}\n${filler}\n`)),
    ),
  );
  collect();
  const before = process.memoryUsage().heapUsed;
  let kept = Infinity;
  await new EventArchives(store, ignored).contents(ids, {
    party,
    find,
    read: async (lines) => {
      collect();
      kept = process.memoryUsage().heapUsed - before;
      return lines.map(({ event_id }) => ({ event_id, data: {}, changes: null }));
    },
  });
  // Those that are kept for the next query have 32 MB, all have 120.
  expect(kept).toBeLessThan(60_000_000);
});

test("readers of few objects do not wait for all those of others", async () => {
  const objects = await Promise.all(
    Array.from({ length: 41 }, (_, index) => packEvents(`${lineOf(index + 1, 10)}\n`)),
  );
  const { store, state, ids, find, read } = await storeWith(objects);
  const archives = new EventArchives(store, ignored);
  const many = Promise.all(
    Array.from({ length: 10 }, (_, n) =>
      archives.contents(ids.slice(4 * n, 4 * n + 4), { party, find, read }),
    ),
  );
  await archives.contents(ids.slice(40), { party: partyOf("b", undefined), find, read });
  expect(state.reads).toBeLessThan(12);
  await many;
  expect(state.reads).toBe(41);
});
