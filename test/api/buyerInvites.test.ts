/** Invitations of buyers: sent by mail, and accepted only with the account of that address. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { passTime } from "../harness/clock.ts";
import { createIn, type Create } from "../harness/records.ts";
import { expectUnchanged } from "../harness/expectUnchanged.ts";
import { programOf, startWorld, type World } from "../harness/world.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";

let world: World;
let outbox: Outbox;
let create: Create;
let bea: Person;

const INVITE = `mutation ($input: InviteBuyerInput!) { inviteBuyer(input: $input) }`;
const ACCEPT = `mutation ($token: String!) { acceptBuyerInvite(input: { token: $token }) {
  id fullName user { id fullName } project { title } } }`;
const unusable = {
  code: "BAD_USER_INPUT",
  field: "token",
  message: "This invitation is unknown, used, expired or revoked; ask for a new one.",
};

beforeAll(async () => {
  world = await startWorld();
  outbox = await createOutbox();
  create = createIn(world.owen);
  bea = await world.signUp("Bea Buyer");
});
afterAll(async () => {
  await outbox.remove();
  await world.stop();
});

// Resets rate limits, as if each test ran in another hour.
beforeEach(() => world.owner.query("delete from app_private.limit_uses"));

const buy = (input: Record<string, unknown> = {}) =>
  create("createBuyer", { projectId: world.project.id, price: 390_000, ...input });
const invite = async (buyerId: string, input: Record<string, unknown> = {}, person = world.owen) =>
  (await person.get(INVITE, { input: { buyerId, ...input } })).inviteBuyer;

/** Sends the waiting mails; returns the tokens in them. */
async function tokens(): Promise<string[]> {
  const log = await runJobs(world.database.ownerUrl, outbox.provider);
  const mails = await outbox.take();
  // Other mails to buyers contain no token.
  const found = mails.flatMap((mail) => /#purchase=(plat_purchase_[\w-]{43})$/m.exec(mail.text!)?.[1] ?? []);
  for (const token of found) expect(log.join("\n")).not.toContain(token);
  return found;
}

test("the mail contains a link that makes its recipient the buyer, once", async () => {
  const id = await buy({ firstName: "Bea", lastName: "Buyer", email: bea.email });
  expect(await invite(id, { message: "Welcome!\nSee you soon" })).toBe(true);
  await runJobs(world.database.ownerUrl, outbox.provider);
  const [mail] = await outbox.take();
  expect(mail).toMatchObject({
    to: [{ address: bea.email }],
    subject: "Your home in Harbour View",
    text: expect.stringContaining(
      "Owen Owner invites you to follow the purchase of your home in Harbour View",
    ),
  });
  expect(mail!.text).toContain("> Welcome!\n> See you soon");
  const token = /#purchase=(\S+)$/m.exec(mail!.text!)![1]!;
  const { rows: kept } = await world.owner.query(
    `select encode(t.token_hash, 'hex') as hash from app_private.buyer_invite_tokens t join app_hidden.buyer_invites i on i.id = t.invite_id where i.buyer_id = $1`,
    [id],
  );
  expect(kept).toEqual([{ hash: createHash("sha256").update(token).digest("hex") }]);

  expect(await expectUnchanged(world, () => world.anonymous.refused(ACCEPT, { token }))).toMatchObject({
    code: "UNAUTHENTICATED",
  });
  expect(await expectUnchanged(world, () => world.olga.refused(ACCEPT, { token }))).toMatchObject({
    code: "FORBIDDEN",
    field: "token",
  });
  const answers = await Promise.all(Array.from({ length: 10 }, () => bea.ask(ACCEPT, { token })));
  const [won, ...more] = answers.filter((answer) => !answer.errors);
  expect(more).toEqual([]);
  expect(won!.data.acceptBuyerInvite).toEqual({
    id,
    fullName: "Bea Buyer",
    user: { id: bea.id, fullName: "Bea Buyer" },
    project: { title: "Harbour View" },
  });
  expect(new Set(answers.flatMap((a) => a.errors?.map((e) => e.extensions.code) ?? []))).toEqual(
    new Set(["BAD_USER_INPUT"]),
  );
  expect(await expectUnchanged(world, () => bea.refused(ACCEPT, { token }))).toMatchObject(unusable);
  expect(await world.owen.refused(INVITE, { input: { buyerId: id } })).toMatchObject({
    code: "CONFLICT",
    existingId: bea.id,
  });
  const { rows } = await world.owner.query(
    "select name, actor_type, actor_id from app_public.events where subject_id = $1 order by id",
    [id],
  );
  expect(rows).toEqual([
    { name: "buyer.created", actor_type: "USER", actor_id: world.owen.id },
    { name: "buyer.invited", actor_type: "USER", actor_id: world.owen.id },
    { name: "buyer.invitation_accepted", actor_type: "BUYER", actor_id: bea.id },
  ]);
  const { viewer } = await bea.get("{ viewer { emailVerifiedAt purchases { id } } }");
  expect(viewer).toEqual({ emailVerifiedAt: expect.any(String), purchases: [{ id }] });
  const { buyer } = await world.max.get(
    `query ($id: ID!) { buyer(id: $id) { user { id fullName email lastLoginAt emailVerifiedAt purchases { id } } } }`,
    { id },
  );
  expect(buyer.user).toEqual({
    id: bea.id,
    fullName: "Bea Buyer",
    email: null,
    lastLoginAt: null,
    emailVerifiedAt: null,
    purchases: [{ id }],
  });
});

test("inviting again sends another link and invalidates the first; another address is another invitation", async () => {
  const id = await buy({ email: bea.email });
  await invite(id);
  const [first] = await tokens();
  await invite(id);
  expect(await bea.refused(ACCEPT, { token: first })).toMatchObject(unusable);
  await invite(id);
  const sent = await tokens();
  expect(sent).toHaveLength(1); // the later one of two jobs
  await invite(id, { email: world.olga.email });
  expect(await bea.refused(ACCEPT, { token: sent[0] })).toMatchObject(unusable);
  const [olgas] = await tokens();
  expect(await bea.refused(ACCEPT, { token: olgas })).toMatchObject({ code: "FORBIDDEN" });
  await world.olga.get(ACCEPT, { token: olgas });
  const { rows } = await world.owner.query(
    "select email, status, send_count from app_hidden.buyer_invites where buyer_id = $1 order by id",
    [id],
  );
  expect(rows).toEqual([
    { email: bea.email, status: "REVOKED", send_count: 3 },
    { email: world.olga.email, status: "ACCEPTED", send_count: 1 },
  ]);
});

test("the address may be given with the invitation, and is required if the buyer has none", async () => {
  const id = await buy();
  expect(
    await expectUnchanged(world, () => world.owen.refused(INVITE, { input: { buyerId: id } })),
  ).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "email",
  });
  expect(
    await expectUnchanged(world, () =>
      world.owen.refused(INVITE, { input: { buyerId: id, email: "nobody" } }),
    ),
  ).toMatchObject({ code: "BAD_USER_INPUT", field: "email" });
  expect(
    await world.owen.refused(INVITE, { input: { buyerId: id, email: bea.email, message: "x".repeat(2001) } }),
  ).toMatchObject({ code: "BAD_USER_INPUT", field: "message" });
  await invite(id, { email: bea.email!.toUpperCase() });
  const { buyer } = await world.owen.get(`query ($id: ID!) { buyer(id: $id) { email } }`, { id });
  expect(buyer.email).toBe(bea.email);
  const [token] = await tokens();
  await bea.get(ACCEPT, { token });
});

test("unknown, expired, revoked and cancelled invitations have the same refusal", async () => {
  for (const token of ["", "plat_purchase_", "x".repeat(5000)])
    expect(await bea.refused(ACCEPT, { token })).toMatchObject({ code: "BAD_USER_INPUT", field: "token" });
  const late = await buy({ email: bea.email });
  await invite(late);
  const [expired] = await tokens();
  await passTime(world.owner, "14 days");
  expect(await bea.refused(ACCEPT, { token: expired })).toMatchObject(unusable);
  await invite(late);
  const [fresh] = await tokens();
  const [reason] = (
    await world.owen.get(`query ($id: ID!) { project(id: $id) { falloutReasons { id } } }`, world.project)
  ).project.falloutReasons;
  await world.owen.get(`mutation ($input: UpdateBuyerInput!) { updateBuyer(input: $input) { id } }`, {
    input: { id: late, status: "CANCELLED", falloutReasonId: reason.id },
  });
  expect(await bea.refused(ACCEPT, { token: fresh })).toMatchObject(unusable);
  expect(await world.owen.refused(INVITE, { input: { buyerId: late } })).toMatchObject({ code: "CONFLICT" });
  const { rows } = await world.owner.query(
    "select status from app_hidden.buyer_invites where buyer_id = $1 order by id",
    [late],
  );
  expect(rows).toEqual([{ status: "EXPIRED" }, { status: "REVOKED" }]);
});

test("mails are rate-limited", async () => {
  const id = await buy({ email: bea.email });
  for (let i = 0; i < 5; i += 1) await invite(id);
  expect(await world.owen.refused(INVITE, { input: { buyerId: id } })).toMatchObject({
    code: "RATE_LIMITED",
    retryAfterSeconds: expect.any(Number),
  });
  await tokens();
});

test("a job that runs twice sends one mail; an invalid payload sends none", async () => {
  const id = await buy({ email: bea.email });
  await passTime(world.owner, "2 hours");
  await invite(id);
  const [token] = await tokens();
  await world.owner.query(
    `select app_private.add_job('buyer_invite__created', jsonb_build_object('id', i.id, 'send_count', 1)) from app_hidden.buyer_invites i where i.buyer_id = $1`,
    [id],
  );
  await world.owner.query("select app_private.add_job('buyer_invite__created', '{\"id\": \"x\"}')");
  expect(await tokens()).toEqual([]);
  await bea.get(ACCEPT, { token });
});

test("a restricted token needs the scope purchase.own to accept an invitation and see purchases", async () => {
  const id = await buy({ email: bea.email });
  await invite(id);
  const [token] = await tokens();
  const restricted = (scopes: string[]) => programOf(world, bea, { scopes });
  const reader = await restricted(["lead.read"]);
  expect(await reader.refused(ACCEPT, { token })).toMatchObject({
    code: "FORBIDDEN",
    permission: "purchase.own",
  });
  const own = await restricted(["purchase.own"]);
  await own.get(ACCEPT, { token });
  const query = `query ($id: ID!) { buyer(id: $id) { id } }`;
  expect((await own.get(query, { id })).buyer).toEqual({ id });
  expect((await reader.get(query, { id })).buyer).toBeNull();
});
