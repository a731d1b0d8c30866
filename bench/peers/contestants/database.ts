/** Statements with the claims of a viewer: a pool, prepared statements, and one round trip per transaction. */
import { Pool, types } from "pg";
import { claimSettings, settings, type Claims } from "../serve.ts";

// As text, like the API.
types.setTypeParser(types.builtins.DATE, (text) => text);

const pool = new Pool({
  connectionString: settings.databaseUrl,
  max: settings.poolSize,
  options: "-c jit=off",
  pipeline: true,
} as ConstructorParameters<typeof Pool>[0]);

const names = Object.keys(claimSettings(undefined));
const setter = `select ${names.map((name, index) => `set_config('${name}', $${index + 1}, true)`).join(", ")}`;

export interface Statement {
  name: string;
  text: string;
  values?: unknown[];
}

/** Executes one statement in its own transaction, with the claims. */
export async function asViewer<Row extends object>(
  claims: Claims | undefined,
  statement: Statement,
): Promise<Row[]> {
  const client = await pool.connect();
  try {
    const [, , { rows }] = await Promise.all([
      client.query({ name: "begin", text: "begin" }),
      client.query({ name: "claims", text: setter, values: Object.values(claimSettings(claims)) }),
      client.query<Row>(statement),
      client.query({ name: "commit", text: "commit" }),
    ]);
    client.release();
    return rows;
  } catch (error) {
    client.release(error as Error);
    throw error;
  }
}
