/**
 * `npm run documents -- FOLDER`: registers the documents of a release, which programs then request by their ids
 * (docs/queries.md).
 * Each `.graphql` file of the folder is one document; its id is `sha256:` and the SHA-256 of its text. Each `.json`
 * file is an object of ids and texts, as written by compilers of clients. An object of files and ids is written to
 * standard output. Either all documents are registered or none: each must be valid and within the limits of a
 * document, and an id can never refer to another text.
 */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { buildSchema, parse, validate } from "postgraphile/graphql";
import { loadConfig } from "../base/config.ts";
import { ownerUrl } from "../database/roles.ts";
import { withDatabase } from "../database/running.ts";
import { documentIdForm } from "../http/trustedDocuments.ts";
import { limitExceeded, measureDocument } from "../limits/measureDocument.ts";
import { scanTokens } from "../limits/scanTokens.ts";

interface Found {
  /** The source file, for messages. */
  file: string;
  id: string;
  text: string;
}

/** The documents below a folder. */
async function documentsOf(folder: string): Promise<Found[]> {
  const names = await readdir(folder, { recursive: true });
  const found: Found[] = [];
  for (const name of names.toSorted()) {
    if (!/\.(graphql|json)$/.test(name)) continue;
    const text = await readFile(join(folder, name), "utf8");
    if (name.endsWith(".graphql"))
      found.push({ file: name, id: `sha256:${createHash("sha256").update(text).digest("hex")}`, text });
    else found.push(...manifest(name, text));
  }
  if (found.length === 0) throw new Error(`There is no .graphql or .json file in ${folder}.`);
  return found;
}

function manifest(file: string, text: string): Found[] {
  let entries: [string, unknown][];
  try {
    entries = Object.entries(JSON.parse(text) as Record<string, unknown>);
  } catch {
    throw new Error(`${file} is not valid JSON.`);
  }
  return entries.map(([id, document]) => {
    if (typeof document !== "string" || !documentIdForm.test(id))
      throw new Error(
        `${file} must be an object with ids (1 to 128 letters, digits, and any of : _ -) as names and documents as values; ${JSON.stringify(id)} is invalid.`,
      );
    return { file, id, text: document };
  });
}

/** @throws Error that names the file of an invalid document */
async function check(documents: readonly Found[]): Promise<void> {
  const schema = buildSchema(await readFile(join(import.meta.dirname, "../../schema.graphql"), "utf8"));
  for (const { file, id, text } of documents) {
    const problem = problemOf(text);
    if (problem) throw new Error(`${file}, ${id}: ${problem}`);
  }

  function problemOf(text: string): string | undefined {
    try {
      const limit = scanTokens(text);
      if (limit) return `it exceeds the limit of ${limit}.`;
      const document = parse(text);
      const over = limitExceeded(measureDocument(document));
      return over ? `it exceeds the limit of ${over}.` : validate(schema, document)[0]?.message;
    } catch (error) {
      return (error as Error).message;
    }
  }
}

async function register(loginUrl: string, documents: readonly Found[]): Promise<number> {
  const client = new Client({ connectionString: ownerUrl(loginUrl) });
  await client.connect();
  try {
    await client.query("begin");
    let added = 0;
    for (const { file, id, text } of documents) {
      const { rows } = await client.query<{ added: boolean }>(
        "select app_private.register_document($1, $2) as added",
        [id, text],
      );
      if (rows[0]!.added === null)
        throw new Error(`${file}: the id ${id} is already the id of another document; use a new id.`);
      if (rows[0]!.added) added += 1;
    }
    await client.query("commit");
    return added;
  } finally {
    await client.end();
  }
}

try {
  const [folder, ...others] = process.argv.slice(2);
  if (!folder || others.length > 0)
    throw new Error("Give the folder of the documents: npm run documents -- FOLDER");
  const documents = await documentsOf(folder);
  await check(documents);
  const added = await withDatabase(loadConfig(process.env, ["--migrate-only"]), (loginUrl) =>
    register(loginUrl, documents),
  );
  const files = documents.filter(({ file }) => file.endsWith(".graphql"));
  console.log(JSON.stringify(Object.fromEntries(files.map(({ file, id }) => [file, id])), null, 2));
  console.error(`${documents.length} documents, ${added} of them new.`);
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
