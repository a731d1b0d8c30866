import { createHmac } from "node:crypto";
import { type Client, type DatabaseError, escapeIdentifier, escapeLiteral } from "pg";
import { DatabaseClient } from "./client.ts";
import { onConnection } from "./onConnection.ts";

/** The API logs in as it. It owns nothing, inherits nothing and can only become one of the viewers' roles. */
export const authenticator = "plat_authenticator";

/** Owns everything of ours in a database, functions that run as their owner included. Nobody logs in as it; it is no superuser. */
export const schemaOwner = "plat_owner";

/**
 * Owns the views that show tables with masked columns. It may read these tables whole, under the policies of plat_user, of which it
 * is a member: a view reads with the rights of its owner, and the owner of a table is held by no policy.
 */
export const masker = "plat_masker";

/**
 * Background work logs in as it. It owns nothing, can become nobody else and reads no table of ours: it runs jobs, and
 * executes the functions that are granted to it, which run as their owner.
 */
export const workerRole = "plat_worker";

const viewerRoles = ["plat_user", "plat_anonymous"];

/** Of the logins of an installation that has the cluster for itself. */
const ownPrefix = "plat_";

/** The logins of an installation: those of the cluster, or, with a prefix of its own, members of them. */
const loginsOf = (prefix: string) => [`${prefix}authenticator`, `${prefix}worker`];

/**
 * The API's own connection. Its password is derived from that of the login that migrates, so that every process that was
 * given the same DATABASE_URL knows it without a place to keep it in, and both are rotated together.
 * @param loginUrl of the login that migrates, with a password.
 * @param prefix of the login's name; see ROLE_PREFIX.
 */
export function authenticatorUrl(loginUrl: string, prefix = ownPrefix): string {
  if (!new URL(loginUrl).password)
    throw new Error(
      "The connection of DATABASE_URL carries no password, so AUTHENTICATOR_URL has to be set.",
    );
  return derivedUrl(loginUrl, loginUrl, `${prefix}authenticator`);
}

/**
 * The connection of background work. Its password is derived from that of the API, so that where that was given, for a
 * second database of the cluster or a login without a password, nothing more has to be.
 * @param loginUrl of the login that migrates.
 * @param apiUrl how the API logs in; derived where omitted.
 * @param prefix of the login's name; see ROLE_PREFIX.
 */
export function workerUrl(loginUrl: string, apiUrl = authenticatorUrl(loginUrl), prefix = ownPrefix): string {
  if (!new URL(apiUrl).password)
    throw new Error("The connection of AUTHENTICATOR_URL carries no password, so WORKER_URL has to be set.");
  return derivedUrl(loginUrl, apiUrl, `${prefix}worker`);
}

function derivedUrl(loginUrl: string, secretUrl: string, role: string): string {
  const url = new URL(loginUrl);
  const secret = decodeURIComponent(new URL(secretUrl).password);
  url.username = role;
  url.password = createHmac("sha256", secret).update(`${role} v1`).digest("base64url");
  return url.href;
}

/**
 * The connection string of a login, with the owner of the schema as the role of each session.
 * @param loginUrl of the login that migrates, which is a member of the owner.
 */
export function ownerUrl(loginUrl: string): string {
  const url = new URL(loginUrl);
  const given = url.searchParams.get("options");
  url.searchParams.set("options", `${given ? `${given} ` : ""}-c role=${schemaOwner}`);
  return url.href;
}

/**
 * Creates the cluster's roles where they are missing. Safe beside other processes that do the same, also for
 * another database of the cluster, where no advisory lock reaches.
 * @param owner a connected client of the database's owner (a superuser, or with CREATEROLE).
 * @param loginUrls how the API and background work will log in.
 * @param prefix of the logins' names; see ROLE_PREFIX.
 * @throws Error with a sentence for the user where a login is that of another installation.
 */
export async function ensureRoles(
  owner: Client,
  loginUrls: readonly string[],
  prefix = ownPrefix,
): Promise<void> {
  for (const role of [schemaOwner, ...viewerRoles, masker])
    await createRole(owner, role, "nologin noinherit");
  await grantMembership(owner, schemaOwner, "current_user", "usage");
  await grantMembership(owner, "plat_user", masker, "usage");
  await grantMembership(owner, masker, schemaOwner, "usage");
  for (const role of [authenticator, workerRole]) await createRole(owner, role, "login noinherit");
  for (const role of viewerRoles) {
    await grantMembership(owner, role, authenticator);
    // The service acts as people too: in the demo, and before it mails them a record. An owner who made the roles may give
    // them away, but is not in them.
    await grantMembership(owner, role, "current_user");
  }
  await limitDatabase(owner, owner.database!);
  const logins = loginsOf(prefix);
  if (prefix !== ownPrefix)
    for (const [index, role] of [authenticator, workerRole].entries()) {
      await createRole(owner, logins[index]!, "login");
      await grantMembership(owner, role, logins[index]!, "usage");
    }
  for (const loginUrl of loginUrls) await ensureLogin(owner, loginUrl, logins);
}

/**
 * Lets the API and background work connect to a database, and nobody make tables of their own there who is not granted it: a trigger on a
 * temporary table would run with the rights of a function that writes to the table. Privileges on a database are not
 * cloned with it.
 * @param owner a client of the database's owner, connected to it or to another one of the cluster.
 */
export async function limitDatabase(owner: Client, database: string): Promise<void> {
  const name = escapeIdentifier(database);
  await retry(() =>
    owner.query(
      `revoke temporary on database ${name} from public; grant connect on database ${name} to ${authenticator}, ${workerRole};
       grant create, temporary on database ${name} to ${schemaOwner}`,
    ),
  );
  if (owner.database === database)
    await retry(() => owner.query("revoke create on schema public from public"));
}

async function createRole(owner: Client, role: string, options: string): Promise<void> {
  await owner.query(`
    do $$
    begin
      if not exists (select from pg_roles where rolname = '${role}') then
        create role ${role} ${options};
      end if;
    exception when duplicate_object or unique_violation then
      null; -- another process was faster
    end
    $$`);
}

/** @param how whether the member has the role's privileges by itself (usage), or may only become it (set). */
async function grantMembership(
  owner: Client,
  role: string,
  member: string,
  how: "usage" | "set" = "set",
): Promise<void> {
  await retry(async () => {
    const { rows } = await owner.query<{ member: boolean }>(
      `select pg_has_role(m.name, $1, 'set') and pg_has_role(m.name, $1, $2) as member
       from (select ${member === "current_user" ? member : escapeLiteral(member)}::name) m (name)`,
      [role, how],
    );
    if (rows[0]?.member) return;
    try {
      await owner.query(`grant ${role} to ${member} with inherit ${how === "usage"}, set true`);
    } catch (error) {
      if ((error as DatabaseError).code !== "42501") throw error;
      const name = member === "current_user" ? owner.user! : member;
      throw new Error(
        `The role ${role} of this cluster is not that of the login ${owner.user!}: let a superuser run \`grant ${role} to ${escapeIdentifier(name)} with admin option\` once.`,
        { cause: error },
      );
    }
  });
}

/**
 * Sets the password only where the login fails: processes that run already keep theirs, and a start changes
 * nothing when nothing changed. The comment of the role says whose it is: the installation of another database of the cluster
 * would be locked out by a new password.
 * @param logins the roles whose passwords are ours to set.
 */
async function ensureLogin(owner: Client, loginUrl: string, logins: readonly string[]): Promise<void> {
  const url = new URL(loginUrl);
  const role = decodeURIComponent(url.username);
  if (!logins.includes(role)) return;
  const works = await canLogIn(loginUrl);
  const { rows } = await owner.query<{ database: string | null }>(
    `select d.datname as database from pg_roles r left join pg_database d
       on shobj_description(r.oid, 'pg_authid') = 'Logs in to the database ' || d.datname || '.'
     where r.rolname = $1`,
    [role],
  );
  const database = rows[0]?.database ?? null;
  if (works && database !== null) return;
  if (!works && database !== null && database !== owner.database)
    throw new Error(
      `${role} is how the installation of the database ${database} logs in to this cluster: set ROLE_PREFIX, such as ROLE_PREFIX=second_, so that this one has logins of its own.`,
    );
  // In a cluster of an earlier version, background work had no login of its own.
  if (!works)
    await retry(() =>
      owner.query(`alter role ${role} login password ${escapeLiteral(decodeURIComponent(url.password))}`),
    );
  await noteDatabase(owner, role);
}

/** Notes whose login a role is; a login that works, but may not be commented on, belongs to somebody who keeps order himself. */
async function noteDatabase(owner: Client, role: string): Promise<void> {
  const note = escapeLiteral(`Logs in to the database ${owner.database!}.`);
  try {
    await retry(() => owner.query(`comment on role ${role} is ${note}`));
  } catch (error) {
    if ((error as DatabaseError).code !== "42501") throw error;
  }
}

async function canLogIn(connectionString: string): Promise<boolean> {
  const client = new DatabaseClient({ connectionString });
  try {
    await client.connect();
    return true;
  } catch (error) {
    // Wrong password, or none set; anything else is not cured by another password.
    if (["28P01", "28000"].includes((error as DatabaseError).code ?? "")) return false;
    throw error;
  } finally {
    await client.end();
  }
}

/** The roles that a login may be in, by the setting that names it. */
const limits = { AUTHENTICATOR_URL: [authenticator, ...viewerRoles], WORKER_URL: [workerRole] };

/**
 * For a login that somebody chose: one that may more than the roles it stands for would undo what they are limited for.
 * @param setting by which it was given.
 * @param loginUrl of a migrated database.
 * @throws Error with a sentence for the user.
 */
export async function requireLimited(setting: keyof typeof limits, loginUrl: string): Promise<void> {
  const { rows } = await onConnection(loginUrl, (client) =>
    client.query<{ name: string; excess: string | null }>(
      `select m.rolname as name, case when m.rolsuper then 'is a superuser' when m.rolbypassrls then 'passes by row-level security'
         when m.rolcreaterole then 'may make roles' when m.rolreplication then 'may replicate'
         else 'is in ' || (select string_agg(r.rolname, ', ' order by 1) from pg_roles r
           where r.oid <> m.oid and r.rolname <> all ($1) and pg_has_role(m.oid, r.oid, 'member')
             and (r.rolname ~ '^(pg|plat)_' or r.oid = (select d.datdba from pg_database d where d.datname = current_database()))) end as excess
       from pg_roles m where m.rolname = current_user`,
      [limits[setting]],
    ),
  );
  const { name, excess } = rows[0]!;
  if (excess)
    throw new Error(
      `${setting} logs in as ${name}, which ${excess}: give it a login of its own, as docs/deployment.md says.`,
    );
}

/** Two processes that alter one role at once: the slower one is told XX000, "tuple concurrently updated". */
async function retry(work: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await work();
      return;
    } catch (error) {
      const { code } = error as DatabaseError;
      if (attempt === 10 || !["XX000", "23505", "40001", "40P01"].includes(code ?? "")) throw error;
    }
  }
}
