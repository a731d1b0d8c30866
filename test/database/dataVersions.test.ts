import { expect, test } from "@jest/globals";
import type { Claims } from "../../src/database/claims.ts";
import { DataVersions } from "../../src/database/dataVersions.ts";

const nextIteration = () => new Promise<void>((resolve) => setImmediate(resolve));

const viewer = (userId: string): Claims => ({ userId, readOnly: false });

/** A pool whose statements are answered by the test. */
function heldPool() {
  const statements: { viewers: readonly string[]; answer(revision: string): void }[] = [];
  const query = ({ values: [viewers] }: { values: [string[]] }) =>
    new Promise((resolve) =>
      statements.push({
        viewers,
        answer: (own) =>
          resolve({ rows: viewers.map((_, n) => ({ number: n + 1, own, whole: null, reached: "0/1" })) }),
      }),
    );
  return { statements, versions: new DataVersions({ query } as never) };
}

test("requests that arrive while a statement runs share the next one", async () => {
  const { statements, versions } = heldPool();
  const [one, other] = [viewer("one"), viewer("other")];
  const first = versions.read(one, undefined);
  const later = [one, other, one].map((claims) => versions.read(claims, undefined));
  expect(statements).toHaveLength(1);
  statements[0]!.answer("before");
  await expect(first).resolves.toMatchObject({ own: "before" });
  await nextIteration();
  await nextIteration();
  expect(statements.map(({ viewers }) => viewers)).toEqual([["one"], ["one", "other"]]);
  statements[1]!.answer("after");
  for (const version of await Promise.all(later)) expect(version).toMatchObject({ own: "after" });
});

test("a request is not answered by a statement that began before it", async () => {
  const { statements, versions } = heldPool();
  const claims = viewer("one");
  const first = versions.read(claims, undefined);
  const second = versions.read(claims, undefined);
  statements[0]!.answer("before");
  await first;
  await nextIteration();
  await nextIteration();
  statements[1]!.answer("after");
  await expect(second).resolves.toMatchObject({ own: "after" });
});
