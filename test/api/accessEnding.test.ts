import { get } from "node:https";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { join, programOf, startWorld, type World } from "../harness/world.ts";

// Account takeover in advance: an attacker registers the address of another person and creates tokens, feeds
// and other lasting access. The owner of the address later gets the account by a code in a mail, which must
// end that access.

let world: World;

beforeAll(async () => {
  world = await startWorld(undefined, { loopbackWebhooks: true });
});
afterAll(() => world.stop());

const password = "another horse battery staple";
const viewer = "{ viewer { id } }";
const ending = "accessEnding { cause sessions accessTokens integrations automations memberships endedAt }";

/** A signed-in account with an unconfirmed address, as an attacker has who registered it first. */
async function hijacked(name: string): Promise<Person> {
  const person = await world.signUp(name);
  await world.owner.query("update app_public.users set email_verified_at = null where id = $1", [person.id]);
  return person;
}

/** Signs in again, which creates another session. */
async function again(person: Person, secret = "correct horse battery staple"): Promise<Person> {
  const { login } = await world.anonymous.get(mutationOf("login", "{ token }"), {
    input: { username: person.email, password: secret },
  });
  return world.person(login.token, person.id);
}

async function reset(person: Person): Promise<any> {
  const { rows } = await world.owner.query("select code from app_private.issue_user_otp($1)", [person.id]);
  const { resetPassword } = await world.anonymous.get(
    mutationOf("resetPassword", `{ id emailVerifiedAt ${ending} }`),
    { input: { token: rows[0].code, password } },
  );
  return resetPassword;
}

const feedOf = async (person: Person) =>
  (
    await person.get(mutationOf("createUserIntegration", "{ id config }"), {
      input: { appKey: "calendar_feed", name: "My calendar" },
    })
  ).createUserIntegration as { id: string; config: { feedUrl: string } };

/** The HTTP status of a feed; only the path of its URL is used. */
const fetched = (feedUrl: string): Promise<number> =>
  new Promise((resolve, reject) =>
    get(
      new URL(new URL(feedUrl).pathname, world.url),
      { rejectUnauthorized: false, agent: false },
      (response) => {
        response.resume();
        resolve(response.statusCode!);
      },
    ).on("error", reject),
  );

const works = async (person: Person): Promise<boolean> => (await person.ask(viewer)).status === 200;

const hookOf = async (person: Person, organizationId: string): Promise<string> =>
  (
    await person.get(mutationOf("createWebhook", "{ id }"), {
      input: { organizationId, url: "https://localhost:9/exfiltration", events: ["*"] },
    })
  ).createWebhook.id;

test("a reset that confirms the address ends all earlier access and lists it in the response", async () => {
  const attacker = await hijacked("Vic Victim");
  const token = await programOf(world, attacker, { name: "Backdoor" });
  const child = await programOf(world, token, { name: "Second backdoor" });
  const feed = await feedOf(attacker);
  const organization = await createIn(attacker)("createOrganization", { name: "Victim Homes" });
  const webhook = await hookOf(attacker, organization);
  const flow = await createIn(attacker)("createWorkflow", {
    organizationId: organization,
    name: "Copy of everything",
    subjectType: "LEAD",
    trigger: { type: "MANUAL" },
    steps: [{ type: "STOP" }],
  });
  await attacker.get("mutation ($id: ID!) { enableWorkflow(input: { id: $id }) { id } }", { id: flow });
  await world.owner.query(
    "insert into app_public.organization_invites (organization_id, email, role, invited_by_id) values ($1, 'accomplice@example.com', 'ADMIN', $2)",
    [organization, attacker.id],
  );
  expect([await works(attacker), await works(token), await works(child)]).toEqual([true, true, true]);
  expect(await fetched(feed.config.feedUrl)).toBe(200);

  const answer = await reset(attacker);
  expect(answer).toEqual({
    id: attacker.id,
    emailVerifiedAt: expect.any(String),
    accessEnding: {
      cause: "PASSWORD_RESET",
      sessions: true,
      accessTokens: ["Backdoor", "Second backdoor"],
      integrations: ["My calendar"],
      automations: expect.arrayContaining([
        "https://localhost:9/exfiltration",
        "Copy of everything",
        "accomplice@example.com",
      ]),
      memberships: ["Victim Homes"],
      endedAt: expect.any(String),
    },
  });
  expect([await works(attacker), await works(token), await works(child)]).toEqual([false, false, false]);
  expect(await fetched(feed.config.feedUrl)).toBe(404);
  const { rows } = await world.owner.query(
    `select w.status, w.disabled_reason, f.status as flow, i.status as invite
     from app_public.webhooks w, app_public.workflows f, app_public.organization_invites i
     where w.id = $1 and f.id = $2 and i.organization_id = $3`,
    [webhook, flow, organization],
  );
  expect(rows).toEqual([
    {
      status: "DISABLED",
      disabled_reason: "It was made before the email address of its maker was verified.",
      flow: "DISABLED",
      invite: "REVOKED",
    },
  ]);

  // The owner of the address enables the webhook again and creates a feed at another URL.
  const victim = await again(attacker, password);
  await victim.get("mutation ($id: ID!) { updateWebhook(input: { id: $id, status: ENABLED }) { id } }", {
    id: webhook,
  });
  const { refreshUserIntegration: fresh } = await victim.get(
    "mutation ($id: ID!) { refreshUserIntegration(input: { id: $id }) { config } }",
    { id: feed.id },
  );
  expect(await fetched(fresh.config.feedUrl)).toBe(200);
  expect(await fetched(feed.config.feedUrl)).toBe(404);
  expect((await victim.get(`{ viewer { ${ending} } }`)).viewer.accessEnding).toEqual(answer.accessEnding);
});

test("a later reset ends tokens, feeds and sessions, but not webhooks and workflows of the organization", async () => {
  const person = await world.signUp("Rea Reset");
  await world.owner.query("update app_public.users set email_verified_at = now() where id = $1", [person.id]);
  const session = await again(person);
  const token = await programOf(world, session, { name: "Script" });
  const feed = await feedOf(session);
  const organization = await createIn(session)("createOrganization", { name: "Reset Homes" });
  const webhook = await hookOf(session, organization);
  const byToken = await hookOf(token, organization);
  const { accessEnding } = await reset(person);
  expect(accessEnding).toMatchObject({
    cause: "PASSWORD_RESET",
    sessions: true,
    accessTokens: ["Script"],
    integrations: ["My calendar"],
    automations: [],
    memberships: ["Reset Homes"],
  });
  expect([await works(person), await works(session), await works(token)]).toEqual([false, false, false]);
  expect(await fetched(feed.config.feedUrl)).toBe(404);
  const { rows } = await world.owner.query(
    "select status from app_public.webhooks where id = any ($1) order by id = $2",
    [[webhook, byToken], byToken],
  );
  expect(rows).toEqual([{ status: "ENABLED" }, { status: "DISABLED" }]);
});

test("confirming the address while signed in keeps that session and ends the others", async () => {
  const attacker = await hijacked("Ivo Invited");
  const token = await programOf(world, attacker, { name: "Waiting" });
  const session = await again(attacker);
  const { rows } = await world.owner.query(
    `insert into app_public.organization_invites (organization_id, email, role, invited_by_id)
     values ($1, $2, 'MEMBER', $3) returning id`,
    [world.harbour.id, attacker.email, world.owen.id],
  );
  const { rows: issued } = await world.owner.query(
    "select token from app_private.issue_invite_token($1, 1)",
    [rows[0].id],
  );
  await session.get(mutationOf("acceptOrganizationInvite", "{ role }"), {
    input: { token: issued[0].token },
  });
  expect([await works(session), await works(attacker), await works(token)]).toEqual([true, false, false]);
  expect((await session.get(`{ viewer { emailVerifiedAt ${ending} } }`)).viewer).toMatchObject({
    emailVerifiedAt: expect.any(String),
    accessEnding: { cause: "ADDRESS_VERIFIED", sessions: true, accessTokens: ["Waiting"] },
  });
  // After the address is confirmed, joining another organization ends nothing.
  const later = await again(attacker);
  await world.owner.query("update app_public.users set email_verified_at = now() where id = $1", [
    attacker.id,
  ]);
  expect([await works(session), await works(later)]).toEqual([true, true]);
});

test("a change of the password ends the sessions and tokens that are not listed to be kept", async () => {
  const change = mutationOf("updatePassword", `{ id ${ending} }`);
  const input = (rest: object = {}) => ({
    input: { currentPassword: "correct horse battery staple", newPassword: password, ...rest },
  });
  const names = ["One", "Two"];
  async function account() {
    const person = await world.signUp("Pat Password");
    const other = await again(person);
    const made = await Promise.all(
      names.map(
        async (name) =>
          (await person.get(mutationOf("createAccessToken", "{ id token }"), { input: { name } }))
            .createAccessToken as { id: string; token: string },
      ),
    );
    return {
      person,
      other,
      feed: await feedOf(person),
      tokens: made,
      programs: made.map(({ token }) => world.person(token)),
    };
  }

  // By default, only the sessions end.
  const plain = await account();
  expect((await plain.person.get(change, input())).updatePassword.accessEnding).toMatchObject({
    cause: "PASSWORD_CHANGED",
    sessions: true,
    accessTokens: [],
    integrations: [],
  });
  expect([await works(plain.person), await works(plain.other)]).toEqual([false, false]);
  expect(await Promise.all(plain.programs.map(works))).toEqual([true, true]);
  expect(await fetched(plain.feed.config.feedUrl)).toBe(200);

  // Listed access is kept, and the rest ends.
  const chosen = await account();
  const { updatePassword } = await chosen.person.get(
    change,
    input({ keepSession: true, keepAccessTokenIds: [chosen.tokens[0]!.id], keepIntegrationIds: [] }),
  );
  expect(updatePassword.accessEnding).toMatchObject({ accessTokens: ["Two"], integrations: ["My calendar"] });
  expect([await works(chosen.person), await works(chosen.other)]).toEqual([true, false]);
  expect(await Promise.all(chosen.programs.map(works))).toEqual([true, false]);
  expect(await fetched(chosen.feed.config.feedUrl)).toBe(404);

  // Ids of other users have no effect, and a kept session ends with the next change.
  const third = await account();
  await third.person.get(change, input({ keepAccessTokenIds: [chosen.tokens[0]!.id] }));
  expect(await Promise.all(third.programs.map(works))).toEqual([false, false]);
  expect(await works(chosen.programs[0]!)).toBe(true);
  await chosen.person.get(change, {
    input: { currentPassword: password, newPassword: `${password}!`, keepSession: false },
  });
  expect(await works(chosen.person)).toBe(false);
});

test("only the user can read which access ended", async () => {
  const person = await world.signUp("Nele Neighbour");
  await join(world, world.harbour.id, person, "MEMBER");
  await reset(person);
  const document = `query ($id: ID!) { user(id: $id) { ${ending} } }`;
  const fresh = await again(person, password);
  expect((await fresh.get(document, { id: person.id })).user.accessEnding.cause).toBe("PASSWORD_RESET");
  expect((await world.owen.get(document, { id: person.id })).user).toEqual({ accessEnding: null });
  const scoped = await programOf(world, fresh, { scopes: ["org.member"] });
  expect((await scoped.get(document, { id: person.id })).user).toEqual({ accessEnding: null });
});
