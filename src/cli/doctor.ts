/**
 * `npm run doctor`: checks settings, disks, files, backups, database, background work and the invariants of deals, and says what to do
 * about each finding.
 * Exits with status 1 if there is a problem. `--json` prints a line of JSON for each check.
 */
import { parseArgs } from "node:util";
import { loadConfig } from "../base/config.ts";
import { withDatabase } from "../database/running.ts";
import { examine } from "../doctor/doctorChecks.ts";
import { createFileStore } from "../providers/files/index.ts";
import { ignoreClosedOutput } from "./ignoreClosedOutput.ts";

ignoreClosedOutput();

try {
  const { values } = parseArgs({ options: { json: { type: "boolean" } } });
  const config = loadConfig(process.env, ["--migrate-only"]);
  const store = createFileStore({ s3: config.s3, dataDir: config.dataDir });
  let [problems, warnings] = [0, 0];
  await withDatabase(config, async (loginUrl) => {
    for await (const report of examine({
      config,
      environment: process.env,
      loginUrl,
      store,
      now: new Date(),
    })) {
      const { name, findings } = report;
      problems += findings.filter(({ level }) => level === "problem").length;
      warnings += findings.filter(({ level }) => level === "warning").length;
      if (values.json) console.log(JSON.stringify(report));
      else if (findings.length === 0) console.log(`ok       ${name}`);
      else
        for (const { level, finding, remedy } of findings)
          console.log(`${level.padEnd(8)} ${name}: ${finding}\n         → ${remedy}`);
    }
  });
  await store.close();
  if (!values.json) console.log(`\n${problems} problems, ${warnings} warnings.`);
  if (problems > 0) process.exitCode = 1;
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
