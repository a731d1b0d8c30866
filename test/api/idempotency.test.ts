import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { randomUUID } from "node:crypto";
import { startApi, type Api, type Person } from "../harness/api.ts";
import { startWorld, type World } from "../harness/world.ts";
import { until } from "../harness/until.ts";

let world: World;
/** A second process on the same database. */
let other: Api;

beforeAll(async () => {
  world = await startWorld();
  other = await startApi(world.database);
});
afterAll(async () => {
  await other.stop();
  await world.stop();
});

const createLead = `mutation ($input: CreateLeadInput!) { createLead(input: $input) { id name insertedAt version allowedTransitions { to } project { title } } }`;
const lead = (members: Record<string, unknown> = {}) => ({
  input: { projectId: world.project.id, name: `Lead ${randomUUID()}`, ...members },
});
const withKey = (key: string) => ({ headers: { "Idempotency-Key": key } });
const leadsNamed = async (name: string) =>
  (await world.owner.query("select id from app_public.leads where name = $1", [name])).rows.length;

test("repeating a request with the header returns the first response, without a second effect", async () => {
  const key = randomUUID();
  const variables = lead();
  const first = await world.ada.ask(createLead, variables, withKey(key));
  expect(first.errors).toBeUndefined();
  await world.ada.get(`mutation ($id: ID!) { updateLead(input: { id: $id, company: "Acme" }) { id } }`, {
    id: first.data.createLead.id,
  });
  const again = await world.ada.ask(createLead, variables, withKey(key));
  expect(again.errors).toBeUndefined();
  expect(again.data).toEqual(first.data);
  const replayed = [first, again].map(({ headers }) => headers["idempotency-replayed"]);
  expect(replayed).toEqual([undefined, "true"]);
  expect(again.data.createLead.version).toBe(1);
  expect(await leadsNamed(variables.input.name)).toBe(1);
});

test("so does repeating it with the key in the input, which takes precedence over the header", async () => {
  const variables = lead({ idempotencyKey: randomUUID() });
  const first = await world.ada.ask(createLead, variables, withKey(randomUUID()));
  const again = await world.ada.ask(createLead, variables, withKey(randomUUID()));
  expect(first.errors ?? again.errors).toBeUndefined();
  expect(again.data).toEqual(first.data);
  expect(await leadsNamed(variables.input.name)).toBe(1);
});

test("generated operations, deletions and functions that return a scalar are idempotent too", async () => {
  const key = () => withKey(randomUUID());
  const source = `mutation ($input: CreateLeadSourceInput!) { createLeadSource(input: $input) { id code } }`;
  const sourceInput = { input: { projectId: world.project.id, name: `Fair ${randomUUID()}` } };
  const creating = key();
  const first = await world.owen.ask(source, sourceInput, creating);
  expect(first.errors).toBeUndefined();
  expect((await world.owen.ask(source, sourceInput, creating)).data).toEqual(first.data);

  const note = `mutation ($id: ID!) { updateLeadSource(input: { id: $id, active: false }) { id active version } }`;
  const changing = key();
  const id = { id: first.data.createLeadSource.id };
  const changed = await world.owen.ask(note, id, changing);
  expect((await world.owen.ask(note, id, changing)).data).toEqual(changed.data);

  const unrelated = await world.owen.ask(source, { input: { ...sourceInput.input, name: "Another" } }, key());
  expect(unrelated.headers["idempotency-replayed"]).toBeUndefined();

  const {
    createLead: { id: leadId },
  } = await world.owen.get(createLead, lead());
  const deletion = `mutation ($id: ID!) { deleteLead(input: { id: $id }) { id deleted project { id } } }`;
  const deleting = key();
  const deleted = await world.owen.ask(deletion, { id: leadId }, deleting);
  expect(deleted.data).toEqual({
    deleteLead: { id: leadId, deleted: true, project: { id: world.project.id } },
  });
  const deletedAgain = await world.owen.ask(deletion, { id: leadId }, deleting);
  expect([deletedAgain.data, deletedAgain.headers["idempotency-replayed"]]).toEqual([deleted.data, "true"]);

  const contact = `mutation { contactService(input: { name: "Ann", email: "ann@example.com", message: "Hello" }) }`;
  const writing = key();
  for (let n = 0; n < 3; n++)
    expect((await world.anonymous.ask(contact, {}, writing)).data).toEqual({ contactService: true });
  const { rows } = await world.owner.query("select from app_private.contact_messages where name = 'Ann'");
  expect(rows).toHaveLength(1);
});

test("20 concurrent requests on two processes have one effect and one response", async () => {
  const key = randomUUID();
  const variables = lead({ email: `${randomUUID()}@example.com` });
  const there = other.person(world.ada.token!);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      (n % 2 ? world.ada : there).ask(createLead, variables, withKey(key)),
    ),
  );
  for (const answer of answers) {
    expect(answer.errors).toBeUndefined();
    expect(answer.data).toEqual(answers[0]!.data);
  }
  expect(await leadsNamed(variables.input.name)).toBe(1);
});

test("reusing a key with another body is refused, for any field", async () => {
  const key = randomUUID();
  await world.ada.ask(createLead, lead(), withKey(key));
  const variables = lead();
  const bodies = [
    createLead,
    createLead.replace("createLead(", "another: createLead("),
    createLead.replace("version", ""),
  ];
  for (const body of bodies) {
    const { data, errors } = await world.ada.ask(body, variables, withKey(key));
    expect(errors?.[0]?.extensions.code).toBe("IDEMPOTENCY_MISMATCH");
    expect(Object.values(data ?? {})).toEqual([null]);
  }
  expect(await leadsNamed(variables.input.name)).toBe(0);
});

test("two viewers may use the same key", async () => {
  const key = randomUUID();
  const variables = lead();
  const [mine, theirs] = await Promise.all(
    [world.ada, world.max].map((person) => person.ask(createLead, variables, withKey(key))),
  );
  expect(mine!.errors ?? theirs!.errors).toBeUndefined();
  expect(mine!.data.createLead.id).not.toBe(theirs!.data.createLead.id);
  const { errors } = await world.olga.ask(createLead, variables, withKey(key));
  expect(errors?.[0]?.extensions.code).toBe("NOT_FOUND");
});

test("a restricted access token does not get a stored response of a less restricted one", async () => {
  const create = `mutation ($input: CreateAccessTokenInput!) { createAccessToken(input: $input) { token } }`;
  const { createAccessToken } = await world.ada.get(create, {
    input: { name: "narrow", scopes: ["project.read"] },
  });
  const key = randomUUID();
  const variables = lead();
  expect((await world.ada.ask(createLead, variables, withKey(key))).errors).toBeUndefined();
  const narrow = await world.person(createAccessToken.token).ask(createLead, variables, withKey(key));
  expect(narrow.data).toEqual({ createLead: null });
});

test("each field of a request is stored separately, and a failed one can be retried", async () => {
  const key = randomUUID();
  const document = `mutation ($a: CreateLeadInput!, $b: CreateLeadInput!) {
    a: createLead(input: $a) { id }
    b: createLead(input: $b) { id }
    c: createLead(input: $a) { id }
  }`;
  const email = `${randomUUID()}@example.com`;
  const blocking = lead({ email });
  const { createLead: blocker } = await world.ada.get(createLead, blocking);
  const variables = { a: lead().input, b: lead({ email }).input };
  const first = await world.ada.ask(document, variables, withKey(key));
  expect(first.errors?.map(({ path }) => path)).toEqual([["b"]]);
  expect(first.data.a.id).not.toBe(first.data.c.id);

  await world.ada.get(`mutation ($id: ID!) { deleteLead(input: { id: $id }) { id } }`, { id: blocker.id });
  const second = await world.ada.ask(document, variables, withKey(key));
  expect(second.errors).toBeUndefined();
  expect(second.data).toEqual({ ...first.data, b: { id: expect.any(String) } });
  expect((await world.ada.ask(document, variables, withKey(key))).data).toEqual(second.data);
});

test("a client that disconnected before the response can get it later", async () => {
  const key = randomUUID();
  const variables = lead();
  const gone = new AbortController();
  const request = world.ada.ask(createLead, variables, { ...withKey(key), signal: gone.signal });
  const settled = Promise.allSettled([request]); // the response may arrive before the client has disconnected
  await until(async () => (await leadsNamed(variables.input.name)) === 1);
  gone.abort();
  await settled;
  const again = await world.ada.ask(createLead, variables, withKey(key));
  expect(again.errors).toBeUndefined();
  expect(again.data.createLead.name).toBe(variables.input.name);
  expect(await leadsNamed(variables.input.name)).toBe(1);
});

test("if the process loses the database, the mutation has no effect and the key remains unused", async () => {
  const key = randomUUID();
  const variables = lead();
  const blocker = await world.owner.connect();
  try {
    await blocker.query("begin; lock table app_public.leads in access exclusive mode");
    const cutOff = world.ada.ask(createLead, variables, withKey(key));
    const killed = async () =>
      // A statement outside of the blocking transaction, in which pg_stat_activity would not be updated.
      (
        await world.owner.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and usename = 'plat_authenticator' and wait_event_type = 'Lock'`,
        )
      ).rows.length > 0;
    await until(killed);
    const answer = await cutOff;
    expect(answer.errors?.[0]?.extensions.code).toBe("UNAVAILABLE");
    expect(answer.data).toEqual({ createLead: null });
  } finally {
    await blocker.query("rollback");
    blocker.release();
  }
  const again = await world.ada.ask(createLead, variables, withKey(key));
  expect(again.errors).toBeUndefined();
  expect(await leadsNamed(variables.input.name)).toBe(1);
});

test("after the first process has ended, another process returns the stored response", async () => {
  const key = randomUUID();
  const variables = lead();
  const dying = await startApi(world.database);
  const first = await dying.person(world.ada.token!).ask(createLead, variables, withKey(key));
  await dying.stop();
  const again = await world.ada.ask(createLead, variables, withKey(key));
  expect(again.errors).toBeUndefined();
  expect(again.data).toEqual(first.data);
});

test("secrets that are shown once are returned again for the same key, and not stored readably", async () => {
  const key = randomUUID();
  const create = `mutation { createAccessToken(input: { name: "once" }) { id token } }`;
  const first = await world.ada.ask(create, {}, withKey(key));
  expect(first.data.createAccessToken.token).toMatch(/^plat_/);
  expect((await world.ada.ask(create, {}, withKey(key))).data).toEqual(first.data);
  const { rows } = await world.owner.query("select k::text as text from app_private.idempotency_keys k");
  const kept = rows.map(({ text }) => text).join();
  expect(kept).not.toContain(key);
  for (const { answers } of (await world.owner.query("select answers from app_private.idempotency_keys"))
    .rows)
    for (const answer of Object.values(answers))
      expect(Buffer.from(answer as string, "base64").includes(first.data.createAccessToken.token)).toBe(
        false,
      );
});

test("a repeated sign-up returns the response of the new user, until the password changes", async () => {
  const key = randomUUID();
  const email = `${randomUUID()}@example.com`;
  const signUp = `mutation ($input: CreateAccountInput!) { createAccount(input: $input) { id email } }`;
  const variables = { input: { email, password: "correct horse battery staple" } };
  const first = await world.anonymous.ask(signUp, variables, withKey(key));
  expect(first.data.createAccount.email).toBe(email);
  expect((await world.anonymous.ask(signUp, variables, withKey(key))).data).toEqual(first.data);

  const { login } = await world.anonymous.get(
    `mutation ($input: LoginInput!) { login(input: $input) { token } }`,
    { input: { username: email, password: variables.input.password } },
  );
  await world
    .person(login.token)
    .get(`mutation ($input: UpdatePasswordInput!) { updatePassword(input: $input) { id } }`, {
      input: { currentPassword: variables.input.password, newPassword: "another horse battery staple" },
    });
  const late = await world.anonymous.ask(signUp, variables, withKey(key));
  expect(late.errors?.[0]?.extensions.code).toBe("UNAUTHENTICATED");
  expect(late.data).toEqual({ createAccount: null });
});

test("after 24 hours the key can be used again, and the sweep deletes it", async () => {
  const key = randomUUID();
  const variables = lead();
  const first = await world.ada.ask(createLead, variables, withKey(key));
  const age = () =>
    world.owner.query(
      "update app_private.idempotency_keys set inserted_at = now() - interval '24 hours 1 second'",
    );
  await age();
  const next = await world.ada.ask(createLead, variables, withKey(key));
  expect(next.data.createLead.id).not.toBe(first.data.createLead.id);
  await age();
  const { rows } = await world.owner.query("select count(*)::int as all from app_private.idempotency_keys");
  const sweep = async () =>
    (await world.owner.query("select app_private.sweep_idempotency_keys(2) as deleted")).rows[0]
      .deleted as number;
  let swept = 0;
  for (let deleted = await sweep(); deleted > 0; deleted = await sweep()) {
    expect(deleted).toBeLessThanOrEqual(2);
    swept += deleted;
  }
  expect(swept).toBe(rows[0].all);
});

test("a malformed key is refused for a mutation, and ignored for a query", async () => {
  const variables = lead();
  for (const key of ["", "x".repeat(256), "caf\u00e9"]) {
    const { errors } = await world.ada.ask(createLead, variables, withKey(key));
    expect(errors?.[0]?.extensions).toMatchObject({ code: "BAD_USER_INPUT", field: "Idempotency-Key" });
    expect((await world.ada.ask("{ viewer { id } }", {}, withKey(key))).data).toEqual({
      viewer: { id: world.ada.id },
    });
  }
  expect(await world.ada.refused(createLead, lead({ idempotencyKey: "two\nlines" }))).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "idempotencyKey",
  });
  expect(await leadsNamed(variables.input.name)).toBe(0);
  const query = withKey(randomUUID());
  expect((await world.ada.ask("{ viewer { id } }", {}, query)).errors).toBeUndefined();
  expect((await world.ada.ask("{ viewer { id email } }", {}, query)).errors).toBeUndefined();
});

test("a key takes no additional statement", async () => {
  const count = async (person: Person, key: string | null) =>
    (await world.statements(() => person.ask(createLead, lead(), key ? withKey(key) : {}))).count;
  expect(await count(world.ada, randomUUID())).toBe(await count(world.ada, null));
});
