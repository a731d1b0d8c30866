/** Checks of the machine: settings, certificate, disks, files, backups. */
import { X509Certificate } from "node:crypto";
import { readdir, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { allBackups } from "../database/backupSeries.ts";
import { storedContents } from "../providers/files/contents.ts";
import { ConfigError, loadConfig } from "../base/config.ts";
import { loadCertificate } from "../http/tlsCertificate.ts";
import { problem, warning, type HealthCheck } from "./finding.ts";

const day = 86_400_000;
const renewWithinDays = 14;
const backupWithinDays = 2;
/** Maximum number of file contents that are checked: each is a request to an S3-compatible store. */
const contentsLookedFor = 10_000;

const settings: HealthCheck = {
  name: "Settings",
  async check({ environment }) {
    try {
      loadConfig(environment, []);
      return [];
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return error.problems.map((sentence) =>
        problem(sentence, "Set it as the sentence says: docs/settings.md lists the settings."),
      );
    }
  },
};

const certificate: HealthCheck = {
  name: "Certificate",
  async check({ config, now }) {
    // The service renews its own certificate 30 days before it expires.
    if (!config.tls) return [];
    const read = await loadCertificate(config).catch((error: Error) => error);
    if (read instanceof Error)
      return [
        problem(
          read.message,
          "Correct the files: the service goes on with what it read before, and could not start with these.",
        ),
      ];
    const { validTo } = new X509Certificate(read.cert);
    const days = Math.floor((Date.parse(validTo) - now.getTime()) / day);
    if (days >= renewWithinDays) return [];
    const graded = days < 0 ? problem : warning;
    return [
      graded(
        days < 0 ? `The certificate ended ${-days} days ago.` : `The certificate ends in ${days} days.`,
        `Renew ${config.tls.cert}; the service takes up the new file without a restart.`,
      ),
    ];
  },
};

const disks: HealthCheck = {
  name: "Disks",
  async check({ config }) {
    const folders = {
      DATA_DIR: config.dataDir,
      ...(config.archive && { ARCHIVE_DIR: config.archive.folder }),
    };
    const found = await Promise.all(
      Object.entries(folders).map(async ([name, folder]) => {
        const disk = await statfs(folder).catch(() => undefined);
        if (!disk) return [problem(`${name} names ${folder}, which is not there.`, "Mount or make it.")];
        const free = Math.round((100 * disk.bavail) / disk.blocks);
        if (free >= 10) return [];
        const graded = free < 3 ? problem : warning;
        return [
          graded(
            `${free} % of the disk of ${name} (${folder}) is free.`,
            "Make room: on a full disk changes are refused and nothing is archived.",
          ),
        ];
      }),
    );
    return found.flat();
  },
};

const files: HealthCheck = {
  name: "Files",
  async check({ config, loginUrl, store, now }) {
    const keys = await storedContents(loginUrl);
    const missing: string[] = [];
    for (const key of keys.slice(0, contentsLookedFor))
      if ((await store.size(key)) === undefined) missing.push(key);
    const orphans = config.s3 ? [] : await orphanedFiles(join(config.dataDir, "files"), new Set(keys), now);
    return [
      ...(missing.length > 0
        ? [
            problem(
              `The store lacks ${missing.length} contents that the database names, the first ${missing[0]}.`,
              "Copy them from a backup (`ARCHIVE_DIR/files`, by the same name).",
            ),
          ]
        : []),
      ...(orphans.length > 0
        ? [
            warning(
              `${orphans.length} files of DATA_DIR/files belong to nothing in the database, the first ${orphans[0]}.`,
              "Keep them until you know that the database is the one that they belong to; then remove them.",
            ),
          ]
        : []),
    ];
  },
};

/** Files of today are skipped, because their rows may not be committed yet. */
async function orphanedFiles(folder: string, known: ReadonlySet<string>, now: Date): Promise<string[]> {
  const orphans: string[] = [];
  for (const start of await readdir(folder).catch(() => [])) {
    if (start.length !== 2) continue;
    for (const rest of await readdir(join(folder, start))) {
      if (known.has(start + rest)) continue;
      const { mtimeMs } = await stat(join(folder, start, rest));
      if (now.getTime() - mtimeMs > day) orphans.push(join(start, rest));
    }
  }
  return orphans;
}

const backups: HealthCheck = {
  name: "Backups",
  async check({ config, client, now }) {
    if (!config.archive)
      return config.production || config.databaseUrl
        ? [
            warning(
              "ARCHIVE_DIR is not set, so Plat knows of no backup.",
              "Set it and run `npm run backup` daily, or see that others back up: docs/backups.md.",
            ),
          ]
        : [];
    const last = (await allBackups(config.archive.folder)).at(-1);
    const days = last && Math.floor((now.getTime() - Date.parse(last.facts.finishedAt)) / day);
    const { rows } = await client.query<{ failing: boolean; segment: string | null }>(
      `select coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) as failing, last_failed_wal as segment from pg_stat_archiver`,
    );
    return [
      ...(days === undefined || days >= backupWithinDays
        ? [
            problem(
              days === undefined ? "There is no backup." : `The last backup is ${days} days old.`,
              "Run `npm run backup`, and have it run daily: docs/backups.md.",
            ),
          ]
        : []),
      ...(rows[0]!.failing
        ? [
            problem(
              `Changes are not archived: segment ${rows[0]!.segment} of the log failed last.`,
              "Look into DATA_DIR/postgres.log for the reason; a full or missing ARCHIVE_DIR fills the disk of the database as well.",
            ),
          ]
        : []),
    ];
  },
};

/** The checks of the machine and its files. */
export const machineChecks: readonly HealthCheck[] = [settings, certificate, disks, files, backups];
