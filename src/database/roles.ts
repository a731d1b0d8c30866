import { createHmac } from "node:crypto";
import { type Client, type DatabaseError, escapeIdentifier, escapeLiteral } from "pg";
import { DatabaseClient } from "./client.ts";
import { onConnection } from "./onConnection.ts";

/** The login of the API. It owns nothing, inherits nothing and can only switch to one of the viewer roles. */
export const authenticator = "plat_authenticator";

/**
 * Owns all our objects in a database, including security definer functions. It cannot log in and is not a superuser.
 */
export const schemaOwner = "plat_owner";

/**
 * Owns the views of tables with masked columns. It can read these tables entirely, under the policies of plat_user,
 * of which it is a member: a view reads with the rights of its owner, and policies do not apply to the owner of a
 * table.
 */
export const masker = "plat_masker";

/**
 * The login of background work. It owns nothing, cannot switch roles and reads none of our tables: it runs jobs and
 * executes the functions granted to it, which run as their owner.
 */
export const workerRole = "plat_worker";

const viewerRoles = ["plat_user", "plat_anonymous"];

/** Logins of an installation that has the cluster for itself. */
const ownPrefix = "plat_";

/** Logins of an installation: those of the cluster or, with a prefix, members of them. */
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
 * @param apiUrl the connection string of the API; derived by default.
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
 * Connection string of a login, with the schema owner as the role of each session.
 * @param loginUrl of the login that migrates, which is a member of the owner.
 */
export function ownerUrl(loginUrl: string): string {
  const url = new URL(loginUrl);
  const given = url.searchParams.get("options");
  url.searchParams.set("options", `${given ? `${given} ` : ""}-c role=${schemaOwner}`);
  return url.href;
}

/**
 * Creates missing cluster roles. Safe beside other processes that do the same, even for another database of the
 * cluster, which advisory locks do not cover.
 * @param owner a connected client of the database owner (a superuser, or with CREATEROLE).
 * @param loginUrls connection strings of the API and background work.
 * @param prefix of the login names; see ROLE_PREFIX.
 * @throws Error with a message for the user if a login belongs to another installation.
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
    // The service also acts as users: in the demo, and before it mails them a record. A role's creator can grant it,
    // but is not a member of it.
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
 * Lets the API and background work connect to a database, and revokes TEMPORARY from everybody else: a trigger on a
 * temporary table would run with the rights of a function that writes to the table. Privileges on a database are not
 * cloned with it.
 * @param owner a client of the database owner, connected to it or to another database of the cluster.
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

/** @param how whether the member inherits the role's privileges (usage) or can only switch to it (set). */
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
 * Sets the password only if the login fails: running processes keep theirs, and a start changes nothing if nothing
 * changed. The comment on the role identifies its installation: a new password would lock out another database of the
 * cluster.
 * @param logins the roles whose passwords we may set.
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
  // In clusters of earlier versions, background work had no login of its own.
  if (!works)
    await retry(() =>
      owner.query(`alter role ${role} login password ${escapeLiteral(decodeURIComponent(url.password))}`),
    );
  await noteDatabase(owner, role);
}

/** Records the installation of a login; a working login that we may not comment on is managed by somebody else. */
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
    // Wrong or missing password; other failures are not fixed by a new password.
    if (["28P01", "28000"].includes((error as DatabaseError).code ?? "")) return false;
    throw error;
  } finally {
    await client.end();
  }
}

/** Roles that a login may be a member of, by the setting that names it. */
const limits = { AUTHENTICATOR_URL: [authenticator, ...viewerRoles], WORKER_URL: [workerRole] };

/**
 * For logins chosen by the operator: a login with more rights than the roles it represents would defeat their limits.
 * @param setting that contained it.
 * @param loginUrl of a migrated database.
 * @throws Error with a message for the user.
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

/** If two processes alter a role concurrently, the slower one gets XX000, "tuple concurrently updated". */
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
