/** The rows of an export, read with the role, the permissions and the token scopes of its requester. */
import type { Pool, PoolClient } from "pg";
import { type Party, partyOf } from "../admission/party.ts";
import type { Claims } from "../database/claims.ts";
import { pgSettings } from "../database/claims.ts";
import { type EventArchives, viewerReader } from "../archives/index.ts";

export interface ExportColumn {
  name: string;
  /** One of ID, TEXT, ENUM, INTEGER, DECIMAL, MONEY, BOOLEAN, DATE, DATETIME, LIST, JSON. */
  type: string;
}

/** The id of the record, then its cells as text. */
export type ExportRow = [id: string, ...cells: (string | null)[]];

/** Lines of text, each with its line break. */
export interface ExportLines {
  text: string;
  length: number;
}

/** A kind of record in an archive. */
export interface ExportTable {
  name: string;
  count: number;
  /** Its records as JSON, without line breaks, in batches. */
  lines(): AsyncIterable<string[]>;
}

/** A file of a record in an archive. */
export interface ExportedFile {
  record: string;
  id: string;
  checksum: string;
  filename: string;
}

export interface ExportSource {
  columns: ExportColumn[];
  /** The first line of CSV. */
  header: string;
  /** The number of rows. */
  total: number;
  /** Permissions and other facts that determine the rows and columns, and the position of the data. */
  permissions: string[];
  rights: string[];
  /** The time zone of local times. */
  timeZone: string;
  /** The rows, to be read once; lines for CSV and JSONL. A batch is emptied once the next one is requested. */
  batches: AsyncIterable<ExportRow[]>;
  lines: AsyncIterable<ExportLines>;
  /** Keys of the first pictures of floor plans, by the plan's id. */
  pictures(floorPlanIds: string[]): Promise<Map<string, string[]>>;
  /** The kinds of records of an organization archive, one after the other, each read once and before the next. */
  tables: ExportTable[];
  /** Its files, in batches; read after the transaction has ended, so that copying them does not block anything. */
  files(): AsyncIterable<ExportedFile[]>;
  /** Ends the transaction; may be called again. */
  close(): Promise<void>;
}

/** Rows per batch: little memory, and a short time on the event loop. */
const batchSize = 250;
const picturesOfAPlan = 3;

/** The subject of the rows: a requested export, of one subject or of all data of an organization; or an organization. */
export type ExportOf = { id: string; isArchive?: boolean } | { organizationId: string };

type Opened = Pick<ExportSource, "columns" | "header" | "total" | "permissions" | "rights" | "timeZone"> & {
  tables?: { name: string; count: number; statement: string }[];
  files?: string | null;
};

/**
 * Opens one snapshot of the data: a cursor in a transaction. It takes no locks that others wait for, and lasts while the rows are written
 * to a local file, not while they are uploaded to a store.
 * @param viewers connections of plat_authenticator
 */
export async function openExportSource(
  viewers: Pick<Pool, "connect">,
  { claims, archives, ...of }: ExportOf & { claims: Claims; archives: EventArchives },
): Promise<ExportSource> {
  const [id, open, parameters] =
    "organizationId" in of
      ? [of.organizationId, "app_hidden.open_organization_archive($1, true)", [of.organizationId]]
      : [
          of.id,
          of.isArchive ? "app_hidden.open_organization_export($1)" : "app_hidden.open_export($1)",
          [of.id],
        ];
  const client = await viewers.connect();
  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    try {
      await client.query("rollback");
      client.release();
    } catch (error) {
      client.release(error as Error);
    }
  };
  try {
    await begin(client, id, claims);
    const { rows } = await client.query<{ opened: Opened }>(`select ${open} as opened`, parameters);
    const { tables = [], files, ...opened } = rows[0]!.opened;
    return {
      ...opened,
      batches: batchesOf(client),
      lines: linesOf(client),
      pictures: picturesOf(client),
      tables: tables.map(({ statement, ...table }) => ({
        ...table,
        lines: () => {
          const lines = recordsOf(client, statement);
          return table.name === "events"
            ? withContents(client, lines, { archives, party: partyOf(claims.userId, undefined) })
            : lines;
        },
      })),
      files: () => filesOf(viewers, files ?? undefined, (reader) => begin(reader, id, claims)),
      close: () => (closed ??= close()),
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Begins a transaction with the rights of the requester, in which due deadlines have expired. */
async function begin(client: PoolClient, id: string, claims: Claims): Promise<void> {
  await client.query("begin isolation level repeatable read read only");
  const settings = Object.entries(pgSettings(claims, { requestId: `export ${id}`, channel: "SYSTEM" }));
  for (const [name, value] of settings) await client.query("select set_config($1, $2, true)", [name, value]);
}

/** The records that a predefined statement of the database returns. */
async function* recordsOf(client: PoolClient, statement: string): AsyncGenerator<string[]> {
  await client.query(`declare archive_rows no scroll cursor for ${statement}`);
  for (;;) {
    const { rows } = await client.query<{ line: string }>(`fetch forward ${batchSize} from archive_rows`);
    const lines = rows.map(({ line }) => line);
    letGo(rows);
    if (lines.length > 0) yield lines;
    if (lines.length < batchSize) break;
  }
  await client.query("close archive_rows");
}

/** Events, with the content of archived ones as the requester may read it. @throws ArchiveUnreadable */
async function* withContents(
  client: PoolClient,
  batches: AsyncIterable<string[]>,
  { archives, party }: { archives: EventArchives; party: Party },
): AsyncGenerator<string[]> {
  for await (const lines of batches) {
    const events = lines.map((line) => JSON.parse(line) as { id: string; archivedAt: string | null });
    const ids = events.filter(({ archivedAt }) => archivedAt !== null).map(({ id }) => id);
    if (ids.length === 0) {
      yield lines;
      continue;
    }
    const query = async (text: string, values: unknown[]) => (await client.query(text, values)).rows;
    const contents = await archives.contents(ids, viewerReader(party, query));
    yield events.map((event, index) => {
      const content = contents.get(event.id);
      if (content instanceof Error) throw content;
      return content ? JSON.stringify({ ...event, ...content }) : lines[index]!;
    });
  }
}

/** Each batch in its own transaction, because copying takes longer than a transaction should last. */
async function* filesOf(
  viewers: Pick<Pool, "connect">,
  statement: string | undefined,
  start: (client: PoolClient) => Promise<void>,
): AsyncGenerator<ExportedFile[]> {
  if (statement === undefined) return;
  for (let last: string | null = null; ;) {
    const client = await viewers.connect();
    let rows: ExportedFile[];
    try {
      await start(client);
      ({ rows } = await client.query<ExportedFile>(
        `select * from (${statement}) f where $1::uuid is null or f.id > $1 order by f.id limit ${batchSize}`,
        [last],
      ));
      await client.query("rollback");
      client.release();
    } catch (error) {
      client.release(error as Error);
      throw error;
    }
    if (rows.length > 0) yield rows;
    if (rows.length < batchSize) return;
    last = rows.at(-1)!.id;
  }
}

/** PERF: settled promises are collected late, and retain their results until then: half of the memory of an export. */
function letGo(rows: unknown[]): void {
  rows.length = 0;
}

async function* batchesOf(client: PoolClient): AsyncGenerator<ExportRow[]> {
  for (;;) {
    const { rows } = await client.query<ExportRow>({
      text: `fetch forward ${batchSize} from export_rows`,
      rowMode: "array",
    });
    const { length } = rows;
    if (length > 0) yield rows;
    if (length < batchSize) return;
    letGo(rows);
  }
}

async function* linesOf(client: PoolClient): AsyncGenerator<ExportLines> {
  for (;;) {
    const { rows } = await client.query<ExportLines>(
      "select lines as text, row_count as length from app_hidden.export_lines($1)",
      [batchSize],
    );
    const next = rows[0];
    const { length } = next!;
    if (length > 0) yield next!;
    if (length < batchSize) return;
    letGo(rows);
  }
}

const picturesOf =
  (client: PoolClient): ExportSource["pictures"] =>
  async (ids) => {
    const { rows } = await client.query<{ floor_plan_id: string; checksum: string }>(
      "select * from app_hidden.floor_plan_pictures($1, $2)",
      [ids, picturesOfAPlan],
    );
    const found = new Map<string, string[]>();
    for (const { floor_plan_id, checksum } of rows)
      found.set(floor_plan_id, [...(found.get(floor_plan_id) ?? []), checksum]);
    return found;
  };
