/** The links that stop one kind of mails for one reader: good for that alone, without signing in. The database signs them. */
import { hkdfSync } from "node:crypto";
import type { JobHelpers } from "graphile-worker";
import type { Pool } from "pg";
import { DatabaseClient } from "../database/client.ts";

/** The kind of mails that an organization writes to the leads of its workflows and drafts. */
export const marketing = "marketing";

export interface Choice {
  /** `marketing`, or a kind of notifications (a column of app_public.notification_settings). */
  kind: string;
  /** Who gets them: a lead, or a purchase without one; of notifications, a membership. */
  readerId: string;
}

/** The address where a POST stops such mails. */
export async function unsubscribeLink(
  { query, serviceUrl }: Pick<JobHelpers, "query" | "serviceUrl">,
  { kind, readerId }: Choice,
): Promise<string> {
  const { rows } = await query<{ token: string }>("select app_private.sign_link($1, $2) as token", [
    kind,
    readerId,
  ]);
  return `${serviceUrl}/unsubscribe/${rows[0]!.token}`;
}

/** @returns undefined for a token that is forged or incomplete */
export async function openUnsubscribeLink(
  pool: Pick<Pool, "query">,
  token: string,
): Promise<Choice | undefined> {
  const { rows } = await pool.query<{ kind: string | null; readerId: string }>(
    'select kind, reader_id as "readerId" from app_private.open_link($1)',
    [token],
  );
  const [found] = rows;
  return found && found.kind !== null ? { kind: found.kind, readerId: found.readerId } : undefined;
}

/**
 * Former versions derived the keys of these links from those of login tokens. What they signed lies in mailboxes for years, while
 * login keys come and go: the database keeps those that are there now.
 */
export async function keepFormerLinkKeys(
  ownerUrl: string,
  jwtKeys: readonly { secret: string }[],
): Promise<void> {
  const client = new DatabaseClient({ connectionString: ownerUrl });
  await client.connect();
  try {
    for (const { secret } of jwtKeys)
      await client.query("select app_private.keep_link_key($1)", [
        Buffer.from(hkdfSync("sha256", secret, "", "plat unsubscribe links", 32)),
      ]);
  } finally {
    await client.end();
  }
}
