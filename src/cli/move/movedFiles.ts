/** File contents of an organization that moves. */
import { escapeIdentifier, type ClientBase } from "pg";
import { thumbnailKey, type FileStore } from "../../providers/files/index.ts";
import { quoted, type Moved, type MovedTables } from "./movedTables.ts";

interface Content {
  checksum: string;
  filemime: string;
  filesize: number;
}

/** The contents that rows of the organization refer to. */
export async function contentsOf(
  source: ClientBase,
  { tables }: MovedTables,
  moved: Moved,
): Promise<Content[]> {
  const named = tables
    .filter(({ columns }) => columns.some(({ name }) => name === "checksum"))
    .map((table) => `select t.checksum from ${quoted(table.name)} t where ${table.condition("t", moved)}`);
  const { rows } = await source.query<Content>(
    `select f.checksum, f.filemime, f.filesize from app_private.stored_files f
     where f.is_stored and f.checksum in (${named.join(" union ")}) order by f.checksum`,
  );
  return rows;
}

/**
 * Copies contents that the other store lacks. @returns the number of copied contents, and those that are missing here
 * as well
 */
export async function copyContents(
  contents: readonly Content[],
  from: FileStore,
  to: FileStore,
): Promise<{ copied: number; missing: string[] }> {
  let copied = 0;
  const missing: string[] = [];
  for (const { checksum, filemime } of contents)
    for (const key of [checksum, thumbnailKey(checksum)]) {
      if ((await to.size(key)) !== undefined) continue;
      const size = await from.size(key);
      const content = size === undefined ? undefined : await from.get(key);
      if (size !== undefined && content) {
        await to.put(key, content, { size, type: key === checksum ? filemime : "image/webp" });
        copied += 1;
      } else if (key === checksum) missing.push(checksum);
    }
  return { copied, missing };
}

/** Registers the contents at the other installation. Its sweep checks a day later whether rows refer to them. */
export async function registerContents(
  source: ClientBase,
  target: ClientBase,
  contents: readonly Content[],
  organizationId: string,
): Promise<void> {
  const columns = ["checksum", "filemime", "filesize", "width", "height", "is_stored"].map(escapeIdentifier);
  const { rows } = await source.query(
    `select ${columns.join(", ")}, (organization_id = $2) is true as counts from app_private.stored_files where checksum = any ($1)`,
    [contents.map(({ checksum }) => checksum), organizationId],
  );
  await target.query(
    `insert into app_private.stored_files as f (${columns.join(", ")}, organization_id, check_at)
       select ${columns.map((column) => `r.${column}`).join(", ")}, case when r.counts then $2::uuid end, now() + interval '1 day'
       from jsonb_to_recordset($1) r (checksum text, filemime text, filesize int, width int, height int, is_stored boolean, counts boolean)
       on conflict (checksum) do update set check_at = excluded.check_at`,
    [JSON.stringify(rows), organizationId],
  );
}
