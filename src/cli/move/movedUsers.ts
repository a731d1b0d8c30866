/** Maps the users of an organization that moves to their accounts at the other installation. */
import { escapeIdentifier, type ClientBase } from "pg";
import type { Changes } from "./movedRows.ts";
import { quoted, type MovedTables } from "./movedTables.ts";

/** The changes before users, cities and names are matched with those of the other installation. */
export const noChanges = (organizationId: string): Changes => ({
  organizationId,
  userIds: [],
  users: new Map(),
  cities: new Map(),
  takenSlugs: [],
  takenNames: [],
});

/**
 * Members, former members, buyers and all other users in rows of the organization. Users with the same id or address
 * at the other installation keep that account; the accounts of the others are copied.
 * @param before an earlier result, whose missing accounts have been copied since
 */
export async function matchUsers(
  source: ClientBase,
  target: ClientBase,
  { tables }: MovedTables,
  before: Changes,
): Promise<Changes> {
  const { organizationId } = before;
  const whose = { organizationId, userIds: [] };
  const named = tables
    .filter(({ isAccount }) => !isAccount)
    .flatMap((table) =>
      [...table.users].map(
        (column) =>
          `select t.${escapeIdentifier(column)} from ${quoted(table.name)} t where ${table.condition("t", whose)}`,
      ),
    );
  interface User {
    id: string;
    email: string | null;
    username: string | null;
    slugs: string[];
  }
  const { rows: users } = await source.query<User>(
    `select u.id, i.email::text, lower(i.username) as username,
       array(select s.slug::text from app_private.slugs s where s.table_name = 'users' and s.record_id = u.id) as slugs
     from app_public.users u left join app_hidden.user_identities i on i.user_id = u.id
     where u.id in (${named.join(" union ")}) and u.id <> all ($1::uuid[]) order by u.id`,
    [before.userIds],
  );
  const { rows: there } = await target.query<{ id: string; email: string | null }>(
    `select u.id, i.email::text from app_public.users u left join app_hidden.user_identities i on i.user_id = u.id
     where u.id = any ($1::uuid[]) or i.email::text = any ($2::text[])`,
    [users.map(({ id }) => id), users.map(({ email }) => email)],
  );
  const ids = new Set(there.map(({ id }) => id));
  const byEmail = new Map(there.map(({ id, email }) => [email, id]));
  const known = new Map<string, string>();
  const copied: User[] = [];
  for (const user of users) {
    const account = ids.has(user.id) ? user.id : user.email === null ? undefined : byEmail.get(user.email);
    if (account === undefined) copied.push(user);
    else if (account !== user.id) known.set(user.id, account);
  }
  const { rows: taken } = await target.query<{ slugs: string[]; names: string[] }>(
    `select array(select s.slug::text from app_private.slugs s where s.table_name = 'users' and s.slug::text = any ($1)) as slugs,
       array(select lower(i.username) from app_hidden.user_identities i where lower(i.username) = any ($2)) as names`,
    [copied.flatMap(({ slugs }) => slugs), copied.map(({ username }) => username)],
  );
  return {
    organizationId,
    userIds: [...before.userIds, ...copied.map(({ id }) => id)],
    users: known,
    cities: before.cities,
    takenSlugs: [...before.takenSlugs, ...taken[0]!.slugs],
    takenNames: [...before.takenNames, ...taken[0]!.names],
  };
}
