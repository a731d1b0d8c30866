import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Client } from "pg";
import { migrationText } from "../../src/database/committed.ts";

/** A small folder of migrations, for tests of the code that applies them. */
export interface MigrationFolder extends AsyncDisposable {
  path: string;
  /** Writes files below `objects`; a file without text is removed. */
  objects(files: Record<string, string | undefined>): Promise<void>;
  /** Commits a migration. */
  commit(name: string, body: string): Promise<void>;
}

const foundations = `
create schema app_public;
create schema app_hidden;
create schema app_private;
create table app_private.schema_objects (hash text primary key, applied_at timestamptz not null default clock_timestamp());
`;

/** A folder whose first migration creates our schemas and `tables`. */
export async function migrationFolder(
  tables: string,
  objects: Record<string, string> = {},
): Promise<MigrationFolder> {
  const path = await mkdtemp(join(tmpdir(), "plat-migrations-"));
  let previous: string | undefined;
  const folder: MigrationFolder = {
    path,
    objects: async (files) => {
      for (const [name, text] of Object.entries(files)) {
        const file = join(path, "objects", name);
        await mkdir(dirname(file), { recursive: true });
        if (text === undefined) await rm(file);
        else await writeFile(file, text);
      }
    },
    commit: async (name, body) => {
      const number = (await readdir(join(path, "committed"))).length + 1;
      const file = `${String(number).padStart(6, "0")}-${name}.sql`;
      const migration = {
        file,
        key: "",
        otherHeaders: [],
        previous,
        hash: undefined,
        body: `${body.trim()}\n`,
      };
      const { text, hash } = migrationText(migration, previous);
      await writeFile(join(path, "committed", file), text);
      previous = hash;
    },
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
  await mkdir(join(path, "committed"));
  await folder.commit("foundations", foundations + tables);
  await folder.objects(objects);
  return folder;
}

/** Runs a statement on a new connection. */
export async function runSql<T extends Record<string, unknown>>(
  connectionString: string,
  text: string,
  values?: unknown[],
): Promise<T[]> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    return (await client.query<T>(text, values)).rows;
  } finally {
    await client.end();
  }
}
