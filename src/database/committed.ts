import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";

/** The folder that graphile-migrate works in. */
export const migrationsFolder = resolve(import.meta.dirname, "../../migrations");
export const committedFolder = join(migrationsFolder, "committed");

/** A committed chapter as graphile-migrate 1.4 reads it. */
export interface Chapter {
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

/** The committed chapters in order. */
export async function readChapters(folder = committedFolder): Promise<Chapter[]> {
  const files = (await readdir(folder)).filter((file) => /^\d+(-[-\w]*)?\.sql$/.test(file));
  const chapters = await Promise.all(
    files.map(async (file) => parseChapter(file, await readFile(join(folder, file), "utf8"))),
  );
  return chapters.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

function parseChapter(file: string, text: string): Chapter {
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

/** graphile-migrate's own sum: it covers the body and, through the previous sum, all that came before. */
export function chapterHash(body: string, previous: string | undefined): string {
  const text = `${previous ?? ""}\n${body.trim()}`.trim();
  return `sha1:${createHash("sha1").update(`${text}\n`).digest("hex")}`;
}

/** The chapter's text with the headers it should have. */
export function chapterText(chapter: Chapter, previous: string | undefined): { text: string; hash: string } {
  const hash = chapterHash(chapter.body, previous);
  const headers = [`--! Previous: ${previous ?? "-"}`, `--! Hash: ${hash}`, ...chapter.otherHeaders];
  return { hash, text: `${headers.join("\n")}\n\n${chapter.body}` };
}
