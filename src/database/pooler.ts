/**
 * A pooler between the API and the server, which assigns a connection to another client after each transaction. It
 * ignores start-up options, so the settings of connections are those of the role; and a statement prepared on one
 * connection may be executed on another.
 */
import { randomUUID } from "node:crypto";
import { escapeIdentifier, escapeLiteral, type Client } from "pg";
import type { Config } from "../base/config.ts";
import { sqlState } from "./databaseErrors.ts";
import { onConnection } from "./onConnection.ts";
import { connectionSettings } from "./pool.ts";
import { authenticatorUrl } from "./roles.ts";

/** SQLSTATEs of a prepared statement that the server has under another text, or does not have. */
const DUPLICATE = "42P05";
const UNKNOWN = "26000";
/** Number of times that two connections alternate: a pooler may give them two sessions at first. */
const ROUNDS = 3;

const settingsOfApi = connectionSettings({ genericPlans: true });

/** The connection string with the login of another one. */
export function withLoginOf(connectionString: string, other: string): string {
  const url = new URL(connectionString);
  const { username, password } = new URL(other);
  url.username = username;
  url.password = password;
  return url.href;
}

/** Connection string of the API, to the server. */
export function apiUrlOf(
  {
    poolerUrl,
    authenticatorUrl: given,
    rolePrefix,
  }: Pick<Config, "poolerUrl" | "authenticatorUrl" | "rolePrefix">,
  loginUrl: string,
): string {
  if (!given) return authenticatorUrl(loginUrl, rolePrefix);
  return poolerUrl ? withLoginOf(loginUrl, given) : given;
}

/**
 * Gives a login of the API the settings of its connections, in this database.
 * @param owner a client of the login that migrates, which created the role.
 */
export async function setRoleDefaults(owner: Client, role: string): Promise<void> {
  const { rows } = await owner.query<{ given: string[] | null }>(
    `select s.setconfig as given from pg_roles r
       left join pg_db_role_setting s on s.setrole = r.oid
         and s.setdatabase = (select d.oid from pg_database d where d.datname = current_database())
     where r.rolname = $1`,
    [role],
  );
  const given = new Map(rows[0]?.given?.map((line) => line.split(/=(.*)/s) as [string, string]));
  const missing = settingsOfApi.filter(([name, value]) => given.get(name)?.replaceAll('"', "") !== value);
  if (missing.length > 0) await owner.query(alterations(role, owner.database!, missing).join(";\n"));
}

const alterations = (role: string, database: string, settings: readonly (readonly [string, string])[]) =>
  settings.map(
    ([name, value]) =>
      `alter role ${escapeIdentifier(role)} in database ${escapeIdentifier(database)} set ${name} = ${escapeLiteral(value)}`,
  );

/**
 * Whether the API can work by way of a pooler.
 * @param poolerUrl the API's login at the pooler
 * @param directUrl the same login at the server
 * @param prepares whether statements have names
 * @throws Error with a sentence for the user
 */
export async function requirePooler(poolerUrl: string, directUrl: string, prepares: boolean): Promise<void> {
  const { role, database } = await requireSameDatabase(poolerUrl, directUrl);
  await requireDefaults(poolerUrl, directUrl, { role, database });
  if (prepares && (await losesStatements(poolerUrl)))
    throw new Error(
      "The pooler of DATABASE_URL keeps no track of prepared statements: set PREPARED_STATEMENTS=0, or, in PgBouncer 1.21 or newer, max_prepared_statements.",
    );
}

async function requireSameDatabase(poolerUrl: string, directUrl: string) {
  const ask = async (client: Client) =>
    (
      await client.query<{ system: string; database: string; role: string }>(
        `select (select system_identifier::text from pg_catalog.pg_control_system()) as system,
           current_database() as database, current_user as role`,
      )
    ).rows[0]!;
  const [one, other] = await Promise.all([onConnection(poolerUrl, ask), onConnection(directUrl, ask)]);
  if (one.system !== other.system || one.database !== other.database)
    throw new Error(
      "DATABASE_URL and DIRECT_DATABASE_URL lead to different databases: name the server behind the pooler by the latter.",
    );
  return other;
}

async function requireDefaults(
  poolerUrl: string,
  directUrl: string,
  { role, database }: { role: string; database: string },
): Promise<void> {
  const missing = async (client: Client) => {
    const { rows } = await client.query<{ name: string }>(
      `select s.name from unnest($1::text[], $2::text[]) s (name, value) join pg_settings g on g.name = s.name
       where g.setting <> s.value and not (s.value = '' and g.setting = '""')`,
      [settingsOfApi.map(([name]) => name), settingsOfApi.map(([, value]) => value)],
    );
    return settingsOfApi.filter(([name]) => rows.some((row) => row.name === name));
  };
  const byPooler = await onConnection(poolerUrl, missing);
  if (byPooler.length === 0) return;
  const ofRole = await onConnection(directUrl, missing);
  if (ofRole.length > 0)
    throw new Error(
      `A pooler hands on no start-up options, so that the login of the API has to have its settings as its own. Run: ${alterations(role, database, ofRole).join("; ")}; then RECONNECT in the pooler's console.`,
    );
  throw new Error(
    "The pooler has connections that are older than the settings of the API's login: run RECONNECT in its console, or restart it.",
  );
}

/** Whether two connections in turn find other statements than they have prepared, or none. */
async function losesStatements(poolerUrl: string): Promise<boolean> {
  const name = `plat_${randomUUID()}`;
  try {
    return await onConnection(poolerUrl, (one) =>
      onConnection(poolerUrl, async (other) => {
        for (let round = 1; round <= ROUNDS; round++)
          for (const [client, value] of [
            [one, 1],
            [other, 2],
          ] as const) {
            const { rows } = await client.query<{ value: number }>({
              name,
              text: `select ${value} as value`,
            });
            if (rows[0]?.value !== value) return true;
          }
        return false;
      }),
    );
  } catch (error) {
    if ([DUPLICATE, UNKNOWN].includes(sqlState(error) ?? "")) return true;
    throw error;
  }
}
