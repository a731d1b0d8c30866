import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ClientBase } from "pg";

/** A fenced block of a guide. */
export interface Block {
  /** The info string of the block, such as "sql" or "sh". */
  language: string;
  text: string;
  /** The heading above it. */
  heading: string;
}

/** The fenced blocks of a Markdown file of the repository, in the order of the text. */
export async function guideBlocks(file: string): Promise<Block[]> {
  const text = await readFile(join(import.meta.dirname, "../..", file), "utf8");
  const blocks: Block[] = [];
  let heading = "";
  for (const [, title, language, block] of text.matchAll(/^#+ (.*)$|^```(\w*)\n([^]*?)^```$/gm)) {
    if (title !== undefined) heading = title;
    else blocks.push({ language: language ?? "", text: block!, heading });
  }
  return blocks;
}

/** Executes the SQL of a guide like its reader: the migration, the replaceable objects, and the derived objects. */
export async function runGuide(file: string, owner: ClientBase): Promise<void> {
  const blocks = (await guideBlocks(file)).filter(({ language }) => language === "sql");
  if (blocks.length !== 2) throw new Error(`${file} has to hold a migration and a file of objects.`);
  const [migration, objects] = blocks.map(({ text }) => text);
  await owner.query(`begin; ${migration}; commit`);
  await owner.query(
    `begin; ${objects}; select app_private.make_event_masks(); select app_private.make_event_readers();
      select app_private.make_event_triggers(); select app_private.make_masked_views();
     select app_private.make_record_functions(); commit`,
  );
}
