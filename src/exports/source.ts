/** The rows of an export, read as whoever asked for it: with their role, their rights, and what their token allowed. */
import type { Pool, PoolClient } from "pg";
import type { Claims } from "../auth/claims.ts";
import { pgSettings } from "../auth/claims.ts";

export interface ExportColumn {
  name: string;
  /** One of ID, TEXT, ENUM, INTEGER, DECIMAL, MONEY, BOOLEAN, DATE, DATETIME, LIST, JSON. */
  type: string;
}

/** The id of the record, then its cells as text. */
export type ExportRow = [id: string, ...cells: (string | null)[]];

/** Lines of text, each with its end. */
export interface ExportLines {
  text: string;
  length: number;
}

export interface ExportSource {
  columns: ExportColumn[];
  /** The first line of CSV. */
  header: string;
  /** How many rows there are. */
  total: number;
  /** What decides which rows and columns there are, and how far it reached. */
  permissions: string[];
  rights: string[];
  /** Of its times, where they are local. */
  timeZone: string;
  /** The rows, to be read once; of CSV and JSONL there are lines. A batch is empty once the next one is asked for. */
  batches: AsyncIterable<ExportRow[]>;
  lines: AsyncIterable<ExportLines>;
  /** Keys of the first pictures of floor plans, by the plan's id. */
  pictures(floorPlanIds: string[]): Promise<Map<string, string[]>>;
  /** Ends the transaction; may be called again. */
  close(): Promise<void>;
}

/** Rows at a time: little memory, and little time in which nothing else gets its turn. */
const batchSize = 250;
const picturesOfAPlan = 3;

type Opened = Pick<ExportSource, "columns" | "header" | "total" | "permissions" | "rights" | "timeZone">;

/**
 * Opens one picture of the data: a cursor in a transaction that sees what was committed when it began. It takes no locks that
 * anybody waits for, and it lasts as long as the rows are written to a local file, not as long as they are brought to a store.
 * @param viewers connections of plat_authenticator
 */
export async function openExportSource(
  viewers: Pool,
  { id, claims }: { id: string; claims: Claims },
): Promise<ExportSource> {
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
    await client.query("begin isolation level repeatable read read only");
    const settings = Object.entries(pgSettings(claims, { requestId: `export ${id}`, channel: "SYSTEM" }));
    for (const [name, value] of settings)
      await client.query("select set_config($1, $2, true)", [name, value]);
    const { rows } = await client.query<{ opened: Opened }>("select app_hidden.open_export($1) as opened", [
      id,
    ]);
    return {
      ...rows[0]!.opened,
      batches: batchesOf(client),
      lines: linesOf(client),
      pictures: picturesOf(client),
      close: () => (closed ??= close()),
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * PERF: promises that are over are collected late, and keep what they brought until then: half of the memory that an export takes.
 */
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
