/**
 * `npm run organizations`: lists the organizations, for operators.
 * - `-- export SLUG --to FILE` writes all its data into an archive of any size, with the rights of one of its owners.
 * - `-- delete SLUG` shows the data that would be deleted. With `--yes`, it is deleted in 30 days; owners receive
 *   `--reason TEXT`. `-- cancel SLUG` cancels that.
 * - `-- tables` lists how the rows of each table belong to an organization (docs/sharding.md). `--rows` counts
 *   references between organizations; `--json` writes one JSON value.
 * - `-- move SLUG --to FILE` shows the effects of a move to another installation, whose settings are in the file.
 *   With `--yes`, it is moved. `-- move SLUG --remove` shows the rows that are left here after a move, and with
 *   `--yes` removes them.
 */
import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { parseArgs } from "node:util";
import type { Client } from "pg";
import { loadConfig, type Config } from "../base/config.ts";
import { onConnection } from "../database/onConnection.ts";
import { makeWorkPool } from "../database/pool.ts";
import { apiUrlOf } from "../database/pooler.ts";
import { withDatabase } from "../database/running.ts";
import { readTenancies, tenancyMeanings, type Tenancies, type Tenancy } from "../database/tenancy.ts";
import { organizationArchive } from "../exports/archive.ts";
import { EventArchives } from "../archives/index.ts";
import { openExportSource } from "../exports/exportSource.ts";
import { createFileStore } from "../providers/files/index.ts";
import { move, removeMovedOrganization } from "./move/index.ts";
import { progress } from "./progress.ts";
import { ignoreClosedOutput } from "./ignoreClosedOutput.ts";

ignoreClosedOutput();

interface Organization {
  id: string;
  slug: string;
  name: string;
  members: number;
  /** When it will be deleted. */
  final_at: Date | null;
}

interface Counted {
  record: string;
  count: number;
  until?: string;
}

const usage =
  "Use `npm run organizations`, with `-- export SLUG --to FILE`, `-- delete SLUG`, `-- cancel SLUG`, `-- move SLUG --to FILE`, `-- move SLUG --remove` or `-- tables`.";

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      to: { type: "string" },
      yes: { type: "boolean" },
      reason: { type: "string" },
      rows: { type: "boolean" },
      json: { type: "boolean" },
      remove: { type: "boolean" },
    },
  });
  const [what = "list", slug, ...more] = positionals;
  const isKnown = ["list", "export", "delete", "cancel", "tables", "move"].includes(what);
  const ofAll = what === "list" || what === "tables";
  if (!isKnown || more.length > 0 || ofAll !== (slug === undefined)) throw new Error(usage);
  if (what !== "tables" && (values.rows || values.json))
    throw new Error("`--rows` and `--json` are options of `-- tables`.");
  if ((what === "export" || (what === "move" && !values.remove)) !== (values.to !== undefined))
    throw new Error("`-- export SLUG --to FILE` and `-- move SLUG --to FILE` need both values.");
  if (values.remove && what !== "move") throw new Error("`--remove` is an option of `-- move SLUG`.");
  // Only the settings that are needed to access the data.
  const config = loadConfig(process.env, ["--migrate-only"]);
  await withDatabase(config, (loginUrl) =>
    onConnection(loginUrl, async (client) => {
      if (what === "tables") return tables(await readTenancies(client, values.rows), values.json ?? false);
      if (slug === undefined) return list(client);
      if (what === "move" && values.remove)
        return removeMovedOrganization(loginUrl, slug, values.yes ?? false);
      if (what === "move")
        return move({ config, loginUrl, slug, settingsFile: values.to!, yes: values.yes ?? false });
      const organization = (await organizations(client, slug))[0];
      if (!organization) throw new Error(`There is no organization with the slug or id ${slug}.`);
      if (what === "export") await save(client, { config, loginUrl, organization, file: values.to! });
      if (what === "delete") await remove(client, organization, values.reason, values.yes ?? false);
      if (what === "cancel") await cancel(client, organization, values.reason);
    }),
  );
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}

async function organizations(client: Client, only: string | null): Promise<Organization[]> {
  const { rows } = await client.query<Organization>(
    `select o.id, o.slug, o.name,
       (select count(*)::int from app_public.organization_user_connections m where m.organization_id = o.id) as members,
       (select d.final_at from app_public.organization_deletions d
        where d.organization_id = o.id and d.status in ('SCHEDULED', 'RUNNING')) as final_at
     from app_public.organizations o
     where o.deleted_at is null and ($1::text is null or $1 in (o.slug::text, o.id::text)) order by o.slug`,
    [only],
  );
  return rows;
}

async function list(client: Client): Promise<void> {
  for (const { id, slug, name, members, final_at } of await organizations(client, null)) {
    const end = final_at ? `, to be deleted at ${final_at.toISOString()}` : "";
    console.log(`${slug}  ${id}  ${name}, ${members} ${members === 1 ? "member" : "members"}${end}`);
  }
}

function tables(found: Tenancies, json: boolean): void {
  const none = found.tables.filter(({ tenancy }) => tenancy === "none");
  if (json) console.log(JSON.stringify(found, null, 2));
  else {
    for (const [tenancy, meaning] of Object.entries(tenancyMeanings)) {
      const ofIt = found.tables.filter((table) => table.tenancy === (tenancy as Tenancy));
      console.log(`${tenancy}: ${meaning} (${ofIt.length})`);
      for (const { table, path } of ofIt) console.log(`  ${[table, ...path].join("  ")}`);
    }
    console.log(`Unique keys that do not include the organization (${found.uniqueKeys.length})`);
    for (const { table, name, columns } of found.uniqueKeys)
      console.log(`  ${table}  ${name} (${columns.join(", ")})`);
    for (const [title, keys] of [
      ["Foreign keys between rows of organizations that do not include the organization", found.foreignKeys],
      ["Foreign keys from other rows to those of an organization", found.outwardKeys],
    ] as const) {
      console.log(`${title} (${keys.length})`);
      for (const { table, name, columns, references, crossing } of keys)
        console.log(
          `  ${table}  ${name} (${columns.join(", ")}) → ${references}${crossing ? `: ${crossing} to other organizations` : ""}`,
        );
    }
  }
  if (none.length > 0)
    throw new Error(
      `It is not known to which organization rows of ${none.map(({ table }) => table).join(", ")} belong: add organization_id, ` +
        "a required foreign key, or the name of the table in src/database/tenancy.ts.",
    );
}

function shown(records: readonly Counted[]): string {
  if (records.length === 0) return "  nothing";
  return records
    .map(({ record, count, until }) => `  ${count} ${record}${until ? `, until ${until}` : ""}`)
    .join("\n");
}

async function remove(
  client: Client,
  { id, slug }: Organization,
  reason: string | undefined,
  yes: boolean,
): Promise<void> {
  const { rows } = await client.query<{ expected: Counted[]; kept: Counted[]; final_at: Date }>(
    "select (d).expected, (d).kept, (d).final_at from (select app_private.schedule_organization_deletion($1, $2, $3) d offset 0) s",
    [id, reason ?? null, !yes],
  );
  const { expected, kept, final_at } = rows[0]!;
  console.log(
    `To be deleted with ${slug}:\n${shown(expected)}\nTo be kept as long as the law requires:\n${shown(kept)}`,
  );
  console.log(
    yes
      ? `The deletion is final at ${final_at.toISOString()}. Its owners are reminded; they can cancel it, and so can \`npm run organizations -- cancel ${slug}\`.`
      : "Nothing was changed: add --yes to delete it in 30 days.",
  );
}

async function cancel(client: Client, { id, slug }: Organization, reason: string | undefined): Promise<void> {
  await client.query("select app_private.end_scheduled_deletion($1, $2)", [id, reason ?? null]);
  console.log(`${slug} will not be deleted; its owners are notified.`);
}

/** Reads with the rights of an owner, in one snapshot. Only data that the owner may read is written. */
async function save(
  client: Client,
  {
    config,
    loginUrl,
    organization: { id, slug },
    file,
  }: { config: Config; loginUrl: string; organization: Organization; file: string },
): Promise<void> {
  const owner = await client.query<{ user_id: string }>(
    `select m.user_id from app_public.organization_user_connections m join app_public.users u on u.id = m.user_id
     where m.organization_id = $1 and m.role = 'OWNER' and u.status = 'ACTIVE' and u.deleted_at is null
     order by m.inserted_at limit 1`,
    [id],
  );
  const userId = owner.rows[0]?.user_id;
  if (!userId) throw new Error(`${slug} has no owner, with whose permissions it would be read.`);
  const log = { warn: (_fields: object, message: string) => console.error(message) };
  const connectionString = apiUrlOf(config, loginUrl);
  const viewers = makeWorkPool({ connectionString, max: 2, applicationName: "plat-organizations", log });
  const store = createFileStore({ s3: config.s3, dataDir: config.dataDir });
  const { tell, end } = progress();
  let written = 0;
  try {
    const source = await openExportSource(viewers, {
      organizationId: id,
      claims: { userId, readOnly: true },
      archives: new EventArchives(store, log),
    });
    try {
      const wrote = (rows: number) => tell(`${(written += rows)} of ${source.total} records`);
      const archive = organizationArchive(source, { store, wrote });
      await pipeline(archive, createWriteStream(file, { flags: "wx", mode: 0o600 })).catch(
        async (error: NodeJS.ErrnoException) => {
          if (error.code === "EEXIST") throw new Error(`${file} exists already; it is not overwritten.`);
          await rm(file, { force: true });
          throw error;
        },
      );
    } finally {
      await source.close();
    }
  } finally {
    end();
    await Promise.all([viewers.end(), store.close()]);
  }
  console.log(`${file} contains ${written} records of ${slug}.`);
}
