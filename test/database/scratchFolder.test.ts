import { expect, test } from "@jest/globals";
import { access, mkdir, rm, utimes } from "node:fs/promises";
import { dirname } from "node:path";
import { removeLeftoverFolders, scratchFolder } from "../../src/database/scratchFolder.ts";

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

test("folders of dead processes are removed; those of others are not, even in other containers", async () => {
  const own = await scratchFolder("own");
  const dead = 2 ** 30;
  const like = (maker: string) => own.replace(new RegExp(`${process.pid}n\\d+-.*$`), `${maker}-abcdef`);
  const namespace = /n(\d+)-\w{6}$/.exec(own)![1]!;
  const folders = {
    left: like(`${dead}n${namespace}`),
    elsewhere: like(`${dead}n1`),
    old: like(`${dead}n2`),
  };
  expect(new Set(Object.values(folders).map(dirname))).toEqual(new Set([dirname(own)]));
  try {
    for (const folder of Object.values(folders)) await mkdir(folder);
    await utimes(folders.old, 1, 1);
    await removeLeftoverFolders();
    expect(await Promise.all([own, folders.left, folders.elsewhere, folders.old].map(isThere))).toEqual([
      true,
      false,
      true,
      false,
    ]);
  } finally {
    for (const folder of [own, ...Object.values(folders)]) await rm(folder, { recursive: true, force: true });
  }
});
