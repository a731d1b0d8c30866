import type { Pool } from "pg";

/** The password of all users in tests. */
export const password = "correct horse battery staple";

/** Its hash: computing and checking one for each user takes 60 ms. */
const passwordHash =
  "$argon2id$v=19$m=19456,t=2,p=1$NZIWE2ZrDkGXzVOjWPs4Sw$+deYdWh9/K2TzzHC4vuPMka8AXqaq1Ip8OGJvfbiV+o";
let names = 0;

/**
 * Creates an account with a confirmed address and signs in, with the functions that the API calls.
 * @param name first and last name; the address is derived from it.
 * @param sign signs a token that SQL has determined.
 * @param domain of the address.
 */
export async function signUp(
  owner: Pool,
  name: string,
  sign: (claims: string) => string,
  domain = "example.com",
): Promise<{ id: string; email: string; token: string }> {
  const email = `${name.toLowerCase().replace(/[^a-z]+/g, ".")}.${++names}@${domain}`;
  const [firstName, ...rest] = name.split(" ");
  const client = await owner.connect();
  try {
    await client.query("begin; set local role plat_anonymous; set local plat.channel = 'API'");
    const account = await client.query<{ id: string }>({
      name: "create account",
      text: "select id from app_public.create_account(email => $1, password => $2, first_name => $3, last_name => $4)",
      values: [email, passwordHash, firstName, rest.join(" ") || null],
    });
    // Confirmation by the code in a mail has its own tests.
    await client.query("set local role none");
    await client.query({
      name: "confirm the address",
      text: "update app_public.users set email_verified_at = now() where id = $1",
      values: [account.rows[0]!.id],
    });
    await client.query("set local role plat_anonymous");
    const login = await client.query<{ token: string }>({
      name: "login",
      text: "select token::text from app_public.login(username => $1, password => $2)",
      values: [email, passwordHash],
    });
    await client.query("commit");
    return { id: account.rows[0]!.id, email, token: sign(login.rows[0]!.token) };
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}

/**
 * Marks the address of an account as confirmed or not, without changing its tokens; confirmation by mail has its own
 * tests.
 */
export async function setConfirmed(owner: Pool, userId: string | null, isConfirmed: boolean): Promise<void> {
  const client = await owner.connect();
  try {
    await client.query("begin; alter table app_public.users disable trigger _700_verified");
    await client.query(
      "update app_public.users set email_verified_at = case when $2 then now() end where id = $1",
      [userId, isConfirmed],
    );
    await client.query("alter table app_public.users enable trigger _700_verified; commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}
