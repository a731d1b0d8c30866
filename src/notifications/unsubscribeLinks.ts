/** Links that stop one kind of mails for one reader, and authorize nothing else, without signing in. The database signs them. */
import { hkdfSync } from "node:crypto";
import type { JobHelpers } from "graphile-worker";
import type { Pool } from "pg";
import { DatabaseClient } from "../database/client.ts";

/** The kind of mails that workflows and drafts of an organization send to leads. */
export const marketing = "marketing";

export interface Choice {
  /** `marketing`, or a kind of notifications (a column of app_public.notification_settings). */
  kind: string;
  /** The recipient: a lead, or a purchase without one; for notifications, a membership. */
  readerId: string;
}

/** The URL at which a POST stops such mails. */
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

/** @returns undefined if a token is forged or incomplete */
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
 * Former versions derived the keys of these links from those of login tokens. The links remain in mailboxes for years, while login keys are
 * rotated: the database stores the keys that exist now.
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
