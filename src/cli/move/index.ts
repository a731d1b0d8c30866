/** `npm run organizations -- move`: opens both installations, and reports the progress. */
import { readFile } from "node:fs/promises";
import { parseEnv } from "node:util";
import type { Client } from "pg";
import { loadSeal } from "../../auth/authKeys.ts";
import { loadConfig, type Config } from "../../base/config.ts";
import { migrateOn } from "../../database/onConnection.ts";
import { apiUrlOf } from "../../database/pooler.ts";
import { withDatabase } from "../../database/running.ts";
import { createFileStore } from "../../providers/files/index.ts";
import { progress } from "../progress.ts";
import { Move, removeMoved, type Installation, type MoveFacts } from "./move.ts";

interface Asked {
  config: Config;
  loginUrl: string;
  slug: string;
  /** File with the settings of the other installation, one per line. */
  settingsFile: string;
  yes: boolean;
}

/**
 * Moves an organization, or with `yes` false only prints what would be moved.
 * @param slug slug or id of the organization
 * @throws Error with a sentence for the operator, if the move is impossible or did not complete
 */
export async function move({ config, loginUrl, slug, settingsFile, yes }: Asked): Promise<void> {
  const other = loadConfig(parseEnv(await readFile(settingsFile, "utf8")), ["--migrate-only"]);
  const url = other.baseUrl;
  if (!url) throw new Error(`${settingsFile} lacks BASE_URL, the URL of the other installation.`);
  await withDatabase(other, async (otherUrl) => {
    const [here, there] = await Promise.all([opened(config, loginUrl), opened(other, otherUrl)]);
    try {
      await migrateOn(loginUrl, (control) =>
        migrateOn(loginUrl, (client) =>
          migrateOn(otherUrl, async (target) => {
            const organizationId = await idOf(control, slug);
            const { tell, end } = progress();
            const it = new Move(
              { ...here, control, client },
              { ...there, client: target, url },
              organizationId,
              tell,
            );
            if (await it.prepare()) {
              console.log(`${slug} is at ${url}: an earlier move was completed.`);
              return;
            }
            if (!yes) {
              console.log(`To be moved with ${slug} to ${url}:\n${summaryOf(await it.facts())}`);
              console.log("Nothing was changed: add --yes to move it.");
              return;
            }
            const report = await it.run().finally(end);
            console.log(`${slug} is at ${url}:\n${summaryOf(report)}`);
            console.log(
              `Changes were refused for ${(report.pausedMs / 1_000).toFixed(1)} s, while ${report.changed} rows were copied again. ` +
                `Its rows are still here: \`npm run organizations -- move ${slug} --remove\` removes them.`,
            );
            if (report.missing.length > 0)
              console.error(`The store lacks the contents of these files: ${report.missing.join(", ")}.`);
          }),
        ),
      );
    } finally {
      await Promise.all([here.store.close(), there.store.close()]);
    }
  });
}

/**
 * Removes the rows that an organization left here when it moved; with `yes` false it only prints where the
 * organization is.
 * @throws Error if no organization of that slug or id has moved
 */
export async function removeMovedOrganization(loginUrl: string, slug: string, yes: boolean): Promise<void> {
  await migrateOn(loginUrl, async (client) => {
    const { rows } = await client.query<{ id: string; url: string }>(
      `select m.organization_id as id, m.url from app_private.organization_moves m
       where m.status = 'MOVED' and $1 in (m.slug, m.organization_id::text)`,
      [slug],
    );
    const [moved] = rows;
    if (!moved) throw new Error(`No organization with the slug or id ${slug} has moved from here.`);
    if (!yes) {
      console.log(`${slug} is at ${moved.url}. Nothing was changed: add --yes to remove its rows here.`);
      return;
    }
    const count = await removeMoved(client, moved.id);
    console.log(
      `${count} rows of ${slug} were removed. Requests for it still get its new address, ${moved.url}.`,
    );
  });
}

async function opened(config: Config, loginUrl: string): Promise<Installation> {
  const log = { error: (_facts: object, message: string) => console.error(message) };
  return {
    store: createFileStore({ s3: config.s3, dataDir: config.dataDir }),
    seal: await loadSeal(config, apiUrlOf(config, loginUrl), log),
  };
}

async function idOf(client: Client, slug: string): Promise<string> {
  const { rows } = await client.query<{ id: string; url: string | null }>(
    `select o.id, (select m.url from app_private.organization_moves m
       where m.organization_id = o.id and m.status = 'MOVED') as url
     from app_public.organizations o where $1 in (o.slug::text, o.id::text)`,
    [slug],
  );
  const [found] = rows;
  if (!found) throw new Error(`There is no organization with the slug or id ${slug}.`);
  if (found.url) throw new Error(`${slug} has already moved to ${found.url}.`);
  return found.id;
}

function summaryOf({ rows, tables, accounts, known, contents, jobs }: MoveFacts): string {
  return [
    `  ${rows} rows of ${tables} tables`,
    `  ${accounts} user accounts, and ${known} users who already have an account there, with another id`,
    `  ${contents} files`,
    `  ${jobs} jobs`,
  ].join("\n");
}
