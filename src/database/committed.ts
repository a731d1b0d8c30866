import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";

/** The folder that graphile-migrate works in. */
export const migrationsFolder = resolve(import.meta.dirname, "../../migrations");
export const committedFolder = join(migrationsFolder, "committed");

/** A committed migration as graphile-migrate 1.4 reads it. */
export interface Migration {
  /** 000001-foundation.sql */
  file: string;
  /** 000001.sql, as the database knows it. */
  key: string;
  /** Header lines other than Previous and Hash, as they stand. */
  otherHeaders: string[];
  previous: string | undefined;
  hash: string | undefined;
  body: string;
}

/** The committed migrations in order. */
export async function readMigrations(folder = committedFolder): Promise<Migration[]> {
  const files = (await readdir(folder)).filter((file) => /^\d+(-[-\w]*)?\.sql$/.test(file));
  const migrations = await Promise.all(
    files.map(async (file) => parseMigration(file, await readFile(join(folder, file), "utf8"))),
  );
  return migrations.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

function parseMigration(file: string, text: string): Migration {
  const lines = text.split("\n");
  const end = lines.findIndex((line) => !/^--! [A-Z]\w*(:.*)?$/.test(line));
  const headers = lines.slice(0, end);
  const value = (name: string) =>
    headers
      .find((line) => line.startsWith(`--! ${name}:`))
      ?.slice(`--! ${name}:`.length)
      .trim();
  return {
    file,
    key: `${file.match(/^\d+/)![0]}.sql`,
    otherHeaders: headers.filter((line) => !/^--! (Previous|Hash):/.test(line)),
    previous: value("Previous"),
    hash: value("Hash"),
    body: `${lines.slice(end).join("\n").trim()}\n`,
  };
}

/** Hash of the last migration, which covers all previous ones; empty if there is none. */
export async function migrationsHash(folder: string): Promise<string> {
  return (await readMigrations(join(folder, "committed"))).at(-1)?.hash ?? "";
}

/** graphile-migrate's own hash: it covers the body and, through the previous hash, everything before. */
export function migrationHash(body: string, previous: string | undefined): string {
  const text = `${previous ?? ""}\n${body.trim()}`.trim();
  return `sha1:${createHash("sha1").update(`${text}\n`).digest("hex")}`;
}

/** Text of the migration with correct headers. */
export function migrationText(
  migration: Migration,
  previous: string | undefined,
): { text: string; hash: string } {
  const hash = migrationHash(migration.body, previous);
  const headers = [`--! Previous: ${previous ?? "-"}`, `--! Hash: ${hash}`, ...migration.otherHeaders];
  return { hash, text: `${headers.join("\n")}\n\n${migration.body}` };
}
