import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { tablesContaining } from "../harness/tablesContaining.ts";
import { createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn } from "../harness/records.ts";
import { join, programOf } from "../harness/world.ts";
import { createOutbox, runJobs } from "../tasks/worker.ts";

// Erasing one's own account: what is erased, what organizations keep, and that nobody else can do it.

let world: Portfolio;
let quinn: Person;
const password = "a password of tests";
const email = "quinn.quitter@person.example";
const traces = [email, "Quinn", "Quitter", "quitter"];
const erasing = `mutation ($input: EraseAccountInput!) { eraseAccount(input: $input) { erasedAt removed kept } }`;

beforeAll(async () => {
  world = await startPortfolio();
  const { createAccount } = await world.anonymous.get(
    "mutation ($input: CreateAccountInput!) { createAccount(input: $input) { id } }",
    { input: { email, password, firstName: "Quinn", lastName: "Quitter", username: "quinnquitter" } },
  );
  await world.owner.query("update app_public.users set email_verified_at = now() where id = $1", [
    createAccount.id,
  ]);
  const { login } = await world.anonymous.get(
    "mutation ($input: LoginInput!) { login(input: $input) { token } }",
    { input: { username: email, password } },
  );
  quinn = world.person(login.token, createAccount.id);
  await join(world, world.harbour.id, quinn, "MEMBER");
  await createLead(quinn, { projectId: world.project.id, name: "Leona Lead", assigneeId: quinn.id });
  await createIn(quinn)("createLeadNote", { leadId: world.leads.open.id, text: "Wants to see the garden." });
  await quinn.get("mutation ($input: UpdateUserInput!) { updateUser(input: $input) { id } }", {
    input: { id: quinn.id, phone: "+14165550199", title: "Quitter in chief" },
  });
  const outbox = await createOutbox();
  await runJobs(world.database.ownerUrl, outbox.provider);
  await outbox.remove();
});
afterAll(() => world.stop());

test("requires the password, a complete account, and another owner of its organizations", async () => {
  expect(await quinn.refused(erasing, { input: { password: "not the password" } })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "password",
  });
  const program = await programOf(world, quinn, { scopes: ["lead.*"] });
  expect(await program.refused(erasing, { input: { password } })).toMatchObject({ code: "FORBIDDEN" });
  expect(await world.anonymous.refused(erasing, { input: { password } })).toMatchObject({
    code: "UNAUTHENTICATED",
  });
  const { createOrganization } = await quinn.get(
    `mutation { createOrganization(input: { name: "Own Homes" }) { id } }`,
  );
  expect(await quinn.refused(erasing, { input: { password } })).toMatchObject({ code: "CONFLICT" });
  await join(world, createOrganization.id, world.max, "OWNER");
});

test("a dry run shows the effects and changes nothing", async () => {
  const before = await tablesContaining(world.owner, traces);
  const { eraseAccount } = await quinn.get(erasing, { input: { password, dryRun: true } });
  expect(eraseAccount.removed.map(({ record }: { record: string }) => record)).toEqual(
    expect.arrayContaining(["users", "userIdentities", "userPasswords", "events"]),
  );
  expect(await tablesContaining(world.owner, traces)).toEqual(before);
  expect((await quinn.get("{ viewer { id } }")).viewer).toEqual({ id: quinn.id });
});

test("erases the data of the person from every table; tokens end, and texts remain without a name", async () => {
  const program = await programOf(world, quinn, {});
  await quinn.get(erasing, { input: { password } });
  expect(await tablesContaining(world.owner, traces)).toEqual({});
  for (const token of [quinn, program]) expect((await token.ask("{ viewer { id } }")).status).toBe(401);
  expect(
    await world.anonymous.refused("mutation ($input: LoginInput!) { login(input: $input) { token } }", {
      input: { username: email, password },
    }),
  ).toMatchObject({ code: "UNAUTHENTICATED" });
  const { lead } = await world.owen.get(
    "query ($id: ID!) { lead(id: $id) { notes { text author { fullName email } } } }",
    { id: world.leads.open.id },
  );
  expect(lead.notes).toEqual([{ text: "Wants to see the garden.", author: null }]);
  const { rows } = await world.owner.query(
    "select count(*)::int as amount from app_public.leads where assignee_id = $1",
    [quinn.id],
  );
  expect(rows).toEqual([{ amount: 0 }]);
});
