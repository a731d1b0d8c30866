import type { Pool, QueryResultRow } from "pg";
import { poolOf } from "./database.ts";
import { asViewer } from "../../src/database/asViewer.ts";

/** Executes SQL as users, like the API: with their role and settings, one transaction for each statement. */
export interface People {
  /** Connections of the owner, to whom no policy applies. */
  owner: Pool;
  /** A new user with the confirmed email address `<name>@example.com`; returns the id. */
  person(name: string): Promise<string>;
  /** A new organization with its members; the first owner creates it. */
  organization(name: string, members: Record<string, "OWNER" | "ADMIN" | "MEMBER">): Promise<string>;
  /** Runs one statement as a user, or as a visitor without a token (null). */
  as<R extends QueryResultRow>(
    user: string | null,
    sql: string,
    values?: unknown[],
    settings?: Settings,
  ): Promise<R[]>;
  end(): Promise<void>;
}

type Settings = Record<string, string>;

/** The parts of a refusal that a client of the API receives. */
export interface Refusal {
  code: string;
  message: string;
  field?: string;
  permission?: string;
  existingId?: string;
  retryAfterSeconds?: number;
}

/** The coded error of a statement; fails if there is none. */
export async function refusal(statement: Promise<unknown>): Promise<Refusal> {
  try {
    await statement;
  } catch (error) {
    const { code, message, detail } = error as { code?: string; message: string; detail?: string };
    if (code !== "PLAT0") throw error;
    return { ...JSON.parse(detail!), message };
  }
  throw new Error("Nothing was refused.");
}

export function createPeople(ownerUrl: string): People {
  const owner = poolOf(ownerUrl, 2);
  const viewers = poolOf(ownerUrl);
  // Dropping the database ends open connections.
  for (const pool of [owner, viewers]) pool.on("error", () => {});

  async function person(name: string): Promise<string> {
    const { rows } = await owner.query<{ id: string }>(
      "insert into app_public.users (first_name, last_name, email_verified_at) values ($1, 'Test', now()) returning id",
      [name],
    );
    const { id } = rows[0]!;
    await owner.query("insert into app_hidden.user_identities (user_id, email) values ($1, $2)", [
      id,
      `${name.toLowerCase()}@example.com`,
    ]);
    return id;
  }

  async function organization(name: string, members: Record<string, string>): Promise<string> {
    const { rows } = await owner.query<{ id: string }>(
      "insert into app_public.organizations (name) values ($1) returning id",
      [name],
    );
    const { id } = rows[0]!;
    for (const [user, role] of Object.entries(members))
      await owner.query(
        "insert into app_public.organization_user_connections (organization_id, user_id, role) values ($1, $2, $3)",
        [id, user, role],
      );
    return id;
  }

  async function as<R extends QueryResultRow>(
    user: string | null,
    sql: string,
    values: unknown[] = [],
    settings: Settings = {},
  ): Promise<R[]> {
    const claims = Object.entries({ user_id: user ?? "", ...settings });
    const role = user ? "plat_user" : "plat_anonymous";
    return asViewer(
      viewers,
      { role, ...Object.fromEntries(claims.map(([key, value]) => [`plat.${key}`, value])) },
      async (client) => (await client.query<R>(sql, values)).rows,
    );
  }

  async function end(): Promise<void> {
    await Promise.all([owner.end(), viewers.end()]);
  }

  return { owner, person, organization, as, end };
}
