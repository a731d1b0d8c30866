/** Commands of the guide "Operating Plat"; its other commands are tested with their subjects. */
import { expect, test } from "@jest/globals";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { copyDataDir, removeDataDir } from "../../src/database/dataDirs.ts";
import { freePort } from "../../src/network/freePort.ts";
import { guideBlocks } from "../harness/guide.ts";
import { temporaryFolder } from "../harness/service.ts";
import { openShell } from "../harness/shell.ts";

/** The headings whose commands are executed here, and the tests of the others. */
const steps = ["Deploy", "Probe", "Scale", "Upgrade", "Back up", "Find out why", "Restore and move"];
const elsewhere = {
  Probes: "test/process/monitoring",
  Metrics: "test/process/monitoring",
  Jobs: "test/browser/jobs",
};

test("its commands deploy, probe, scale, upgrade, back up, analyse, restore and move", async () => {
  const blocks = (await guideBlocks("docs/operating.md")).filter(({ language }) => language === "sh");
  expect(blocks.map(({ heading }) => heading).filter((heading) => !(heading in elsewhere))).toEqual(steps);
  await using folder = await temporaryFolder();
  for (const name of ["srv/plat", "mnt", "var/log"])
    await mkdir(join(folder.path, name), { recursive: true });
  // As left by an earlier run, so that the first start migrates nothing.
  await copyDataDir(process.env.PLAT_TEST_MIGRATED!, join(folder.path, "srv/plat"));
  const ports = new Map<string, number>();
  for (const port of ["8443", "8444", "8446"]) ports.set(port, await freePort());
  const script = blocks
    .filter(({ heading }) => steps.includes(heading))
    .map(({ heading, text }) => `printf '\\n# ${heading}\\n'\n${text}`)
    .join("")
    .replaceAll(/(?<=[ =>])\/(srv|mnt|var)\//g, `${folder.path}/$1/`)
    .replaceAll(/\b84\d\d\b/g, (port) => String(ports.get(port)));
  await using shell = await openShell();
  // No process remains after a failure.
  const output = await shell
    .run(
      `cd '${resolve(import.meta.dirname, "../..")}'; trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n${script}`,
      {
        HOME: folder.path,
        DEMO: "0",
      },
    )
    .finally(() => removeDataDir(join(folder.path, "srv/plat-restored")));
  const of = Object.fromEntries(
    output.split(/^# /m).map((text) => [text.split("\n")[0]!, text.slice(text.indexOf("\n") + 1)]),
  );
  expect(of["Deploy"]).toContain('"status":"ready"');
  expect(of["Deploy"]).toContain('{"data":{"publicProjects":[]}');
  expect(of["Probe"]).toMatch(/"alive".*plat_workers 1\n/s);
  expect(of["Scale"]).toContain('"worker":true');
  expect(of["Back up"]).toMatch(/^\d{4}-\S+Z .* MiB/m);
  expect(of["Find out why"]).toMatch(/^0 problems, /m);
  expect(of["Find out why"]).toContain("publicProjects");
  expect(of["Restore and move"]).toMatch(/Restored into .*"status":"ready"/s);
}, 180_000);
