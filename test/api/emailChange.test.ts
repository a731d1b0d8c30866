import { request } from "node:https";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { mutationOf } from "../harness/records.ts";
import { password, setConfirmed } from "../harness/signUp.ts";
import { programOf, startWorld, type World } from "../harness/world.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";

// Changing the address of an account: both addresses confirm, the present one can stop it, and nobody learns
// who has an account.

let world: World;
let outbox: Outbox;

beforeAll(async () => {
  world = await startWorld();
  outbox = await createOutbox();
});
afterAll(async () => {
  await world.stop();
  await outbox.remove();
});
interface Mail {
  to: string;
  subject: string;
  text: string;
  /** The code for confirmEmailChange, if the mail has one. */
  code: string;
  stop: string;
}

/** The mails of all due jobs. */
async function mails(): Promise<Mail[]> {
  await runJobs(world.database.ownerUrl, outbox.provider);
  return (await outbox.take()).map(({ to, subject, text }) => ({
    to: to![0]!.address!,
    subject: subject!,
    text: text!,
    code: /#confirm-email-change=(\w+)/.exec(text!)?.[1] ?? "",
    stop: /(\/stop-email-change\/\w+)/.exec(text!)?.[1] ?? "",
  }));
}
/** The codes that the job would send, from the function that it calls; sending the mails takes half a second. */
async function codes(person: Person): Promise<Pick<Mail, "to" | "code" | "stop">[]> {
  const { rows } = await world.owner.query("select * from app_private.issue_email_change($1)", [person.id]);
  return rows.flatMap((row) => [
    ...(row.former_email === null
      ? []
      : [{ to: row.former_email, code: row.former_code, stop: `/stop-email-change/${row.stop_token}` }]),
    ...(row.email === null ? [] : [{ to: row.email, code: row.code ?? "", stop: "" }]),
  ]);
}
const shown = "{ id email emailVerifiedAt emailChange { email isConfirmed isFormerConfirmed expiresAt } }";
const ask = (person: Person, email: string, secret = password) =>
  person.ask(mutationOf("requestEmailChange", shown), { input: { email, password: secret } });
const confirm = (person: Person, token: string) =>
  person.ask(mutationOf("confirmEmailChange", shown), { input: { token } });
const codeOf = (sent: Pick<Mail, "to" | "code">[], to: string) => sent.find((mail) => mail.to === to)!.code;
const addressOf = async (person: Person) => (await person.get("{ viewer { email } }")).viewer.email;
const works = async (person: Person) => (await person.ask("{ viewer { id } }")).status === 200;
const signIn = (username: string) =>
  world.anonymous.ask(mutationOf("login", "{ token }"), { input: { username, password } });
let names = 0;
const fresh = () => `fresh.${++names}@example.com`;

const page = (method: string, path: string): Promise<{ status: number; text: string }> =>
  new Promise((resolve, reject) => {
    request(
      new URL(path, world.url),
      { method, rejectUnauthorized: false, agent: false, headers: { accept: "text/html" } },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk) => (text += chunk));
        response.on("end", () => resolve({ status: response.statusCode!, text }));
      },
    )
      .on("error", reject)
      .end();
  });

test("an account gets another address when both addresses have confirmed it, in either order", async () => {
  for (const presentFirst of [true, false]) {
    await mails();
    const person = await world.signUp("Ann Address");
    const email = fresh();
    const requested = await ask(person, email.toUpperCase());
    expect(requested.errors).toBeUndefined();
    expect(requested.data.requestEmailChange).toMatchObject({
      email: person.email,
      emailChange: { email, isConfirmed: false, isFormerConfirmed: false },
    });
    const sent = await mails();
    expect(sent.map(({ to, subject }) => [to, subject])).toEqual([
      [person.email, "Your email address will be changed"],
      [email, "Confirm your new email address"],
    ]);
    expect(sent[0]!.text).toContain(email);
    const order = presentFirst ? [person.email!, email] : [email, person.email!];
    const first = await confirm(person, codeOf(sent, order[0]!));
    expect(first.data.confirmEmailChange).toMatchObject({
      email: person.email,
      emailChange: { isConfirmed: !presentFirst, isFormerConfirmed: presentFirst },
    });
    // Using the same code again does not count as the second confirmation.
    expect((await confirm(person, codeOf(sent, order[0]!))).data.confirmEmailChange.email).toBe(person.email);
    const second = await confirm(person, codeOf(sent, order[1]!));
    expect(second.data.confirmEmailChange).toMatchObject({ email, emailChange: null });
    expect((await signIn(email)).errors).toBeUndefined();
    expect((await signIn(person.email!)).errors![0]!.extensions.code).toBe("UNAUTHENTICATED");
    expect((await confirm(person, codeOf(sent, email))).errors![0]!.extensions).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "token",
    });
    const notified = (await mails()).map(({ to, subject }) => [to, subject]).sort();
    expect(notified).toEqual(
      [email, person.email!].sort().map((to) => [to, "The email address of your account was changed"]),
    );
  }
});

test("requires the password, a complete account, and codes from the account's own mails", async () => {
  const person = await world.signUp("Pat Proof");
  const thief = await programOf(world, person, { name: "Stolen" });
  for (const who of [person, thief])
    expect((await ask(who, fresh(), "a wrong password")).errors![0]!.extensions).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "password",
    });
  const restricted = await programOf(world, person, { scopes: ["org.admin"] });
  expect((await ask(restricted, fresh())).errors![0]!.extensions.code).toBe("FORBIDDEN");
  expect((await ask(world.anonymous, fresh())).errors![0]!.extensions.code).toBe("UNAUTHENTICATED");
  expect((await ask(person, person.email!)).errors![0]!.extensions).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "email",
  });
  expect(await codes(person)).toEqual([]);

  const email = fresh();
  await ask(person, email);
  const sent = await codes(person);
  const stranger = await world.signUp("Sid Stranger");
  for (const { code } of sent)
    expect((await confirm(stranger, code)).errors![0]!.extensions.code).toBe("BAD_USER_INPUT");
  const document = "query ($id: ID!) { user(id: $id) { emailChange { email } } }";
  expect((await person.get(document, { id: person.id })).user.emailChange).toEqual({ email });
  for (const who of [restricted, stranger])
    expect((await who.get(document, { id: person.id })).user?.emailChange ?? null).toBeNull();
  // A new request invalidates the former codes, and cancelling it invalidates the last ones.
  await ask(person, fresh());
  for (const { code } of sent)
    expect((await confirm(person, code)).errors![0]!.extensions.code).toBe("BAD_USER_INPUT");
  const later = await codes(person);
  await person.get(mutationOf("cancelEmailChange", "{ emailChange { email } }"), { input: {} });
  for (const { code } of later)
    expect((await confirm(person, code)).errors![0]!.extensions.code).toBe("BAD_USER_INPUT");
  expect(await addressOf(person)).toBe(person.email);
  // Up to five per hour.
  for (let n = 0; n < 3; n++) expect((await ask(person, fresh())).errors).toBeUndefined();
  expect((await ask(person, fresh())).errors![0]!.extensions.code).toBe("RATE_LIMITED");
});

test("codes expire after a day", async () => {
  const person = await world.signUp("Dan Day");
  await ask(person, fresh());
  const sent = await codes(person);
  await world.owner.query(
    "update app_private.email_changes set expires_at = expires_at - interval '1 day' where user_id = $1",
    [person.id],
  );
  for (const { code } of sent)
    expect((await confirm(person, code)).errors![0]!.extensions.code).toBe("BAD_USER_INPUT");
  expect((await page("GET", sent[0]!.stop)).status).toBe(403);
});

test("the owner of the present address stops it without signing in, which ends all sessions", async () => {
  // An attacker with the password.
  const victim = await world.signUp("Vera Victim");
  const thief = world.person((await signIn(victim.email!)).data.login.token);
  const email = fresh();
  await ask(thief, email);
  const [first] = await codes(victim);
  // The link of the first mail also stops a later request.
  await ask(thief, email);
  await mails();
  const later = await codes(victim);
  expect(await confirm(thief, codeOf(later, email))).toMatchObject({
    data: { confirmEmailChange: { email: victim.email } },
  });
  const question = await page("GET", first!.stop);
  expect(question).toMatchObject({ status: 200, text: expect.stringContaining(email) });
  // Mail scanners open links, which changes nothing by itself.
  expect(await works(thief)).toBe(true);
  expect((await page("POST", first!.stop)).text).toContain("The change was stopped");
  expect([await works(thief), await works(victim)]).toEqual([false, false]);
  expect((await mails()).map(({ to, subject }) => [to, subject])).toEqual([
    [victim.email, "The change of your email address was stopped"],
  ]);
  const again = world.person((await signIn(victim.email!)).data.login.token);
  for (const { code } of later)
    expect((await confirm(again, code)).errors![0]!.extensions.code).toBe("BAD_USER_INPUT");
  expect(await addressOf(again)).toBe(victim.email);
  for (const stop of [first!.stop, later[0]!.stop, "/stop-email-change/x"])
    expect((await page("POST", stop)).status).toBe(403);
  expect(await works(again)).toBe(true);
});

test("only the owner of an address learns that it has an account", async () => {
  const [person, other] = [await world.signUp("Eve Enumerates"), await world.signUp("Olaf Other")];
  await mails();
  const asks = async (email: string) => {
    const { result, count, texts } = await world.statements(() => ask(person, email));
    const { rows } = await world.owner.query(
      "select task_identifier as task from graphile_worker.jobs order by id",
    );
    const sent = await mails();
    const { emailChange, ...rest } = result.data.requestEmailChange;
    expect(emailChange).toMatchObject({ email, isConfirmed: false, isFormerConfirmed: false });
    return { sent, same: { count, texts, rest, jobs: rows } };
  };
  const free = await asks(fresh());
  const taken = await asks(other.email!);
  expect(taken.same).toEqual(free.same);
  expect(taken.sent.map(({ to, subject, code }) => [to, subject, code !== ""])).toEqual([
    [person.email, "Your email address will be changed", true],
    [other.email, "You already have an account", false],
  ]);
  // The response to the confirmation by the present address is the same, too.
  const confirmed = await confirm(person, codeOf(taken.sent, person.email!));
  expect(confirmed.data.confirmEmailChange.emailChange).toMatchObject({
    isConfirmed: false,
    isFormerConfirmed: true,
  });
  expect(await addressOf(person)).toBe(person.email);

  // An address that gets an account meanwhile: the person who confirms owns it, and may learn that.
  const email = fresh();
  await ask(person, email);
  const sent = await codes(person);
  await world.anonymous.get(mutationOf("createAccount", "{ id }"), { input: { email, password } });
  await confirm(person, codeOf(sent, person.email!));
  expect((await confirm(person, codeOf(sent, email))).errors![0]!.extensions.code).toBe("CONFLICT");
  expect(await addressOf(person)).toBe(person.email);
});

test("limits mails to an address that others enter", async () => {
  const email = fresh();
  let amount = 0;
  for (const name of ["Flo One", "Flo Two"]) {
    const person = await world.signUp(name);
    for (let n = 0; n < 4; n++) {
      await ask(person, email);
      amount += (await codes(person)).filter(({ to }) => to === email).length;
    }
  }
  expect(amount).toBe(5);
});

test("an account with an unconfirmed address only confirms the new one, and loses its previous access", async () => {
  const person = await world.signUp("Mira Mistyped");
  await setConfirmed(world.owner, person.id, false);
  const other = world.person((await signIn(person.email!)).data.login.token);
  const program = await programOf(world, other, { name: "Of before" });
  const email = fresh();
  await ask(person, email);
  const sent = await codes(person);
  expect(sent.map(({ to }) => to)).toEqual([email]);
  expect((await confirm(person, sent[0]!.code)).data.confirmEmailChange).toEqual({
    id: person.id,
    email,
    emailVerifiedAt: expect.any(String),
    emailChange: null,
  });
  expect([await works(person), await works(other), await works(program)]).toEqual([true, false, false]);
});

test("sessions, tokens and feeds remain; codes of the former address end; its invitations can be accepted", async () => {
  const person = await world.signUp("Ines Invited");
  const program = await programOf(world, person, { name: "Script" });
  const session = world.person((await signIn(person.email!)).data.login.token);
  await world.owen.get(mutationOf("createOrganizationInvite", "{ id }"), {
    input: { organizationId: world.harbour.id, email: person.email, role: "MEMBER" },
  });
  await world.anonymous.get(mutationOf("createUserOtp", ""), { input: { email: person.email } });
  const before = await runJobs(world.database.ownerUrl, outbox.provider).then(() => outbox.take());
  const [invitation] = before.flatMap(({ text }) => /plat_invite_[\w-]+/.exec(text!) ?? []);
  const otp = before
    .find(({ subject }) => subject === "Your password reset code")!
    .text!.match(/\b\w{24}\b/)![0];
  const email = fresh();
  await ask(person, email);
  for (const { code } of await codes(person)) await confirm(person, code);
  expect(await addressOf(person)).toBe(email);
  expect([await works(person), await works(program), await works(session)]).toEqual([true, true, true]);
  const reset = await world.anonymous.refused(mutationOf("resetPassword", "{ id }"), {
    input: { token: otp, password: "whoever has the old mailbox" },
  });
  expect(reset).toMatchObject({ code: "BAD_USER_INPUT", field: "token" });
  const accept = mutationOf("acceptOrganizationInvite", "{ role }");
  expect((await person.get(accept, { input: { token: invitation } })).acceptOrganizationInvite).toEqual({
    role: "MEMBER",
  });
  // If another user has an account with the former address, its invitations belong to that user.
  await world.owner.query("delete from app_public.organization_user_connections where user_id = $1", [
    person.id,
  ]);
  const has = async () =>
    (await world.owner.query("select app_private.has_address($1, $2) as has", [person.id, person.email]))
      .rows[0].has;
  expect(await has()).toBe(true);
  await world.anonymous.get(mutationOf("createAccount", "{ id }"), {
    input: { email: person.email, password },
  });
  expect(await has()).toBe(false);
});
