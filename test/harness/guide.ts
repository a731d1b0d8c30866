import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** A fenced block of a guide. */
export interface Block {
  /** What stands behind the fence, such as "sql" or "sh". */
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
