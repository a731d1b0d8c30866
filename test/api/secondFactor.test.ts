import { until } from "../harness/until.ts";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { mutationOf } from "../harness/records.ts";
import { codeOf, enrolled } from "../harness/secondFactor.ts";
import { password, setConfirmed } from "../harness/signUp.ts";
import { programOf, startWorld, type World } from "../harness/world.ts";

// A second factor: neither the password, the mailbox nor a token alone is sufficient.

let world: World;

beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

const login = (person: Person, secondFactorCode?: string, secret = password) =>
  world.anonymous.ask(mutationOf("login", "{ token user { email } }"), {
    input: { username: person.email, password: secret, secondFactorCode },
  });
const loginError = async (person: Person, code?: string, secret?: string) =>
  (await login(person, code, secret)).errors?.[0]?.extensions;
const required = { code: "UNAUTHENTICATED", reason: "SECOND_FACTOR_REQUIRED", field: "secondFactorCode" };
const wrong = { code: "UNAUTHENTICATED", reason: "SECOND_FACTOR_WRONG", field: "secondFactorCode" };
const works = async (person: Person) => (await person.ask("{ viewer { id } }")).status === 200;
const notices = async (person: Person) =>
  (
    await world.owner.query<{ change: string }>(
      "select payload ->> 'change' as change from graphile_worker._private_jobs where payload ->> 'user_id' = $1 and payload ->> 'change' is not null order by id",
      [person.id],
    )
  ).rows.map(({ change }) => change);
const otherCode = (code: string) => String((Number(code) + 123_457) % 1_000_000).padStart(6, "0");

test("an app is enrolled by its first code; from then on the password alone is not sufficient", async () => {
  const person = await world.signUp("Flo Factor");
  const other = world.person((await login(person)).data.login.token);
  const program = await programOf(world, person, { name: "Script" });
  const { enrollSecondFactor: made } = await person.get(
    mutationOf("enrollSecondFactor", "{ secret uri expiresAt }"),
    {
      input: { password },
    },
  );
  expect(made.secret).toMatch(/^[A-Z2-7]{32}$/);
  expect(made.uri).toBe(
    `otpauth://totp/Plat:${person.email!.replace("@", "%40")}?secret=${made.secret}&issuer=Plat&algorithm=SHA1&digits=6&period=30`,
  );
  const { rows } = await world.owner.query(
    "select sealed from app_private.second_factors where user_id = $1",
    [person.id],
  );
  expect(rows[0].sealed).not.toContain(made.secret);
  // It is not required until a code has confirmed it.
  expect(await loginError(person)).toBeUndefined();
  const factor = "{ viewer { secondFactor { enabledAt recoveryCodesLeft } } }";
  expect((await person.get(factor)).viewer.secondFactor).toBeNull();
  const confirm = mutationOf("confirmSecondFactor", "{ codes }");
  expect(await person.refused(confirm, { input: { code: otherCode(codeOf(made.secret)) } })).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "code",
  });
  // Codes of consecutive time steps, independent of when they are sent.
  const [code, next] = [codeOf(made.secret), codeOf(made.secret, 1)];
  const { confirmSecondFactor: given } = await person.get(confirm, { input: { code } });
  expect(new Set(given.codes).size).toBe(10);
  for (const one of given.codes) expect(one).toMatch(/^([0-9a-hjkmnp-tv-z]{4}-){3}[0-9a-hjkmnp-tv-z]{4}$/);
  expect((await person.get(factor)).viewer.secondFactor).toEqual({
    enabledAt: expect.any(String),
    recoveryCodesLeft: 10,
  });
  // The other sessions, opened without it, have ended; access tokens remain.
  expect([await works(person), await works(other), await works(program)]).toEqual([true, false, true]);
  expect(await loginError(person)).toMatchObject(required);
  expect(await loginError(person, "not a code")).toMatchObject(wrong);
  expect(await notices(person)).toContain("SECOND_FACTOR_ENABLED");
  // The confirming code is used up; the next one can sign in once.
  expect(await loginError(person, code)).toMatchObject(wrong);
  expect((await login(person, `${next.slice(0, 3)} ${next.slice(3)}`)).data.login.user.email).toBe(
    person.email,
  );
  expect(await loginError(person, next)).toMatchObject(wrong);
  expect(
    await person.refused(mutationOf("enrollSecondFactor", "{ secret }"), { input: { password } }),
  ).toMatchObject({
    code: "CONFLICT",
  });
  expect(
    await person.refused(mutationOf("confirmSecondFactor", "{ codes }"), {
      input: { code },
    }),
  ).toMatchObject({ code: "BAD_USER_INPUT" });
});

test("every operation with a password refuses a wrong one, then a missing or wrong code, and changes nothing", async () => {
  const [person, member, plain] = await Promise.all(
    ["Pru Proof", "Mem Proof", "Pla Proof"].map((name) => world.signUp(name)),
  );
  const [app] = await Promise.all([enrolled(world, person!), enrolled(world, member!)]);
  await world.owner.query(
    `insert into app_public.organization_user_connections (organization_id, user_id, role)
     values ($1, $2, 'OWNER'), ($1, $3, 'MEMBER')`,
    [world.harbour.id, person!.id, member!.id],
  );
  /** By function; the first is called by a user without a second factor. */
  const inputs: Record<string, { input: object; field?: string; person?: Person }> = {
    enroll_second_factor: { input: {}, person: plain! },
    request_email_change: { input: { email: "pru.proof.new@example.com" } },
    renew_recovery_codes: { input: {} },
    reset_member_second_factor: { input: { organizationId: world.harbour.id, userId: member!.id } },
    update_password: { input: { newPassword: "another good password 7" }, field: "currentPassword" },
    disable_second_factor: { input: {} },
    erase_account: { input: {} },
    request_organization_deletion: { input: { organizationId: world.harbour.id } },
  };
  // Signing in has tests of its own.
  const { rows } = await world.owner.query<{ name: string }>(
    `select proname as name from pg_proc where pronamespace = 'app_public'::regnamespace and proname <> 'login'
       and 'app_public.password_proof'::regtype = any (proargtypes) order by 1`,
  );
  expect(rows.map(({ name }) => name)).toEqual(Object.keys(inputs).toSorted());
  const state = async () =>
    (
      await world.owner.query(
        `select array(select to_jsonb(f) - 'last_step' from app_private.second_factors f where f.user_id = any ($1) order by f.user_id) as factors,
           array(select p.password_hash from app_private.user_passwords p where p.user_id = any ($1) order by p.user_id) as passwords,
           array(select c.code_sha256::text from app_private.recovery_codes c where c.user_id = any ($1) order by 1) as codes,
           array(select to_jsonb(c) from app_private.email_changes c where c.user_id = any ($1)) as changes,
           array(select d.id from app_public.organization_deletions d) as deletions`,
        [[person!.id, member!.id, plain!.id]],
      )
    ).rows;
  const before = await state();
  for (const [name, { input, field = "password", person: who = person! }] of Object.entries(inputs)) {
    const mutation = mutationOf(
      name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
      "{ __typename }",
    );
    const refusal = async (secret: string, secondFactorCode?: string) => ({
      name,
      ...(await who.refused(mutation, {
        input: { ...input, [field]: secret, ...(secondFactorCode && { secondFactorCode }) },
      })),
    });
    const code = name === "enroll_second_factor" ? undefined : await app!.next();
    expect(await refusal("a wrong password", code)).toMatchObject({ name, code: "BAD_USER_INPUT", field });
    if (!code) continue;
    expect(await refusal(password)).toMatchObject({ name, field: "secondFactorCode" });
    await world.owner.query("truncate app_private.limit_uses");
    expect(await refusal(password, otherCode(code))).toMatchObject({ name, reason: "SECOND_FACTOR_WRONG" });
  }
  expect(await state()).toEqual(before);
});

test("of many concurrent sign-ins with one code, one succeeds", async () => {
  const person = await world.signUp("Ray Race");
  const app = await enrolled(world, person);
  const code = await app.next();
  const answers = await Promise.all(Array.from({ length: 6 }, () => login(person, code)));
  expect(answers.filter(({ errors }) => !errors)).toHaveLength(1);
});

test("a recovery code replaces the app, once, in any spelling", async () => {
  const person = await world.signUp("Rea Recovery");
  const { recoveryCodes, next } = await enrolled(world, person);
  const [first, second, third] = recoveryCodes as [string, string, string];
  expect(await loginError(person, first)).toBeUndefined();
  expect(await loginError(person, first)).toMatchObject(wrong);
  const typed = ` ${second.toUpperCase().replaceAll("-", " ").replaceAll("0", "O").replaceAll("1", "l")} `;
  expect(await loginError(person, typed)).toBeUndefined();
  expect((await notices(person)).filter((change) => change === "RECOVERY_CODE_USED")).toHaveLength(2);
  expect((await person.get("{ viewer { secondFactor { recoveryCodesLeft } } }")).viewer.secondFactor).toEqual(
    {
      recoveryCodesLeft: 8,
    },
  );
  const { rows } = await world.owner.query("select code_sha256::text from app_private.recovery_codes");
  expect(JSON.stringify(rows)).not.toContain(third.replaceAll("-", ""));
  // The code of another user is not accepted.
  const other = await world.signUp("Oda Other");
  await enrolled(world, other);
  expect(await loginError(other, third)).toMatchObject(wrong);
  // Renewing invalidates the former codes, and requires both the password and a code.
  const renew = mutationOf("renewRecoveryCodes", "{ codes }");
  expect(await person.refused(renew, { input: { password, secondFactorCode: "000000" } })).toMatchObject({
    code: "BAD_USER_INPUT",
    reason: "SECOND_FACTOR_WRONG",
  });
  const { renewRecoveryCodes: fresh } = await person.get(renew, {
    input: { password, secondFactorCode: await next() },
  });
  expect(await loginError(person, third)).toMatchObject(wrong);
  expect(await loginError(person, fresh.codes[0])).toBeUndefined();
});

test("without the password, the second factor is not revealed, and no attempt is counted", async () => {
  const person = await world.signUp("Pip Private");
  const app = await enrolled(world, person);
  await world.owner.query("truncate app_private.limit_uses");
  const plain = await world.signUp("Pit Plain");
  const responseTo = async (who: Person) => {
    const { result, texts } = await world.statements(() =>
      login(who, codeOf(app.secret), "a wrong password"),
    );
    return {
      texts,
      errors: result.errors!.map(({ message, extensions }) => [message, { ...extensions, requestId: "" }]),
    };
  };
  expect(await responseTo(person)).toEqual(await responseTo(plain));
  await responseTo(person);
  const { rows } = await world.owner.query(
    "select 1 from app_private.limit_uses where key like 'second_factor.hour %'",
  );
  expect(rows.length).toBe(0);
  await world.owner.query("truncate app_private.limit_uses");
  // Other users do not see it either.
  const document = "query ($id: ID!) { user(id: $id) { secondFactor { enabledAt } } }";
  await world.owner.query(
    "insert into app_public.organization_user_connections (organization_id, user_id, role) values ($1, $2, 'MEMBER')",
    [world.harbour.id, person.id],
  );
  expect((await world.owen.get(document, { id: person.id })).user).toEqual({ secondFactor: null });
  const restricted = await programOf(world, person, { scopes: ["org.member"] });
  expect((await restricted.get(document, { id: person.id })).user).toEqual({ secondFactor: null });
  // An account without a second factor ignores the code.
  expect(await loginError(plain, "123456")).toBeUndefined();
});

test("ten wrong codes an hour, also in parallel, lock the factor, and the user is notified", async () => {
  const person = await world.signUp("Gus Guessed");
  const app = await enrolled(world, person);
  const answers = await Promise.all(
    Array.from({ length: 14 }, (_, n) => loginError(person, otherCode(String(n * 7).padStart(6, "0")))),
  );
  const codes = answers.map((error) => error!.code);
  expect(codes.filter((code) => code === "UNAUTHENTICATED").length).toBeLessThanOrEqual(10);
  await until(
    () => loginError(person, "000000"),
    (error) => error!.code === "RATE_LIMITED",
  );
  expect(await loginError(person, await app.next())).toMatchObject({
    code: "RATE_LIMITED",
    retryAfterSeconds: expect.any(Number),
  });
  expect((await notices(person)).filter((change) => change === "SECOND_FACTOR_GUESSED")).toHaveLength(1);
  // The lock does not apply to resetting the password by mail.
  const { rows } = await world.owner.query("select code from app_private.issue_user_otp($1)", [person.id]);
  const reset = await world.anonymous.ask(mutationOf("resetPassword", "{ email }"), {
    input: { token: rows[0].code, password: "a password nobody knows", secondFactorCode: await app.next() },
  });
  expect(reset.data.resetPassword).toEqual({ email: person.email });
});

test("a session with the password cannot change anything without a code", async () => {
  const person = await world.signUp("Sam Stolen");
  const app = await enrolled(world, person);
  const thief = await programOf(world, person, { name: "Stolen" });
  const tries: [string, string, object][] = [
    ["updatePassword", "{ id }", { currentPassword: password, newPassword: "whatever the thief likes" }],
    ["requestEmailChange", "{ id }", { email: "thief@example.com", password }],
  ];
  for (const [field, selection, input] of tries) {
    expect(await thief.refused(mutationOf(field, selection), { input })).toMatchObject({
      code: "FORBIDDEN",
      reason: "SECOND_FACTOR_REQUIRED",
    });
    expect(
      await thief.refused(mutationOf(field, selection), { input: { ...input, secondFactorCode: "000000" } }),
    ).toMatchObject({ code: "BAD_USER_INPUT", reason: "SECOND_FACTOR_WRONG", field: "secondFactorCode" });
  }
  const disable = mutationOf("disableSecondFactor", "{ secondFactor { enabledAt } }");
  expect(await thief.refused(disable, { input: { password, secondFactorCode: "000000" } })).toMatchObject({
    reason: "SECOND_FACTOR_WRONG",
  });
  expect(
    await thief.refused(disable, {
      input: { password: "a wrong password", secondFactorCode: await app.next() },
    }),
  ).toMatchObject({ code: "BAD_USER_INPUT", field: "password" });
  const restricted = await programOf(world, person, { scopes: ["org.admin"] });
  for (const who of [restricted, world.anonymous])
    expect(
      (await who.refused(disable, { input: { password, secondFactorCode: await app.next() } })).code,
    ).toBe(who === restricted ? "FORBIDDEN" : "UNAUTHENTICATED");
  // With a code, everything.
  for (const [field, selection, input] of tries.toReversed())
    await person.get(mutationOf(field, selection), {
      input: {
        ...input,
        ...(field === "updatePassword" && { keepSession: true }),
        secondFactorCode: await app.next(),
      },
    });
  expect(
    (
      await person.get(disable, {
        input: { password: "whatever the thief likes", secondFactorCode: await app.next() },
      })
    ).disableSecondFactor,
  ).toEqual({ secondFactor: null });
  expect(await notices(person)).toEqual(
    expect.arrayContaining(["SECOND_FACTOR_DISABLED", "PASSWORD_CHANGED"]),
  );
  expect(await loginError(person, undefined, "whatever the thief likes")).toBeUndefined();
});

test("access to the mailbox alone is not enough to reset the password", async () => {
  const person = await world.signUp("Mel Mailbox");
  const app = await enrolled(world, person);
  const { rows } = await world.owner.query("select code from app_private.issue_user_otp($1)", [person.id]);
  const reset = (secondFactorCode?: string) =>
    world.anonymous.ask(mutationOf("resetPassword", "{ email organizations { role } }"), {
      input: { token: rows[0].code, password: "a new password of mine", secondFactorCode },
    });
  const refused = await reset();
  expect([refused.data, refused.errors![0]!.extensions]).toMatchObject([
    { resetPassword: null },
    { code: "FORBIDDEN", reason: "SECOND_FACTOR_REQUIRED" },
  ]);
  expect((await reset("000000")).errors![0]!.extensions).toMatchObject({ reason: "SECOND_FACTOR_WRONG" });
  expect(await works(person)).toBe(true);
  // The code of the mail was not used up.
  expect((await reset(app.recoveryCodes[3])).data.resetPassword.email).toBe(person.email);
  expect(await loginError(person, undefined, "a new password of mine")).toMatchObject(required);
});

test("an unconfirmed account cannot have a second factor", async () => {
  const squatter = await world.signUp("Sol Squatter");
  await setConfirmed(world.owner, squatter.id, false);
  expect(
    await squatter.refused(mutationOf("enrollSecondFactor", "{ secret }"), { input: { password } }),
  ).toMatchObject({
    code: "FORBIDDEN",
    reason: "EMAIL_NOT_CONFIRMED",
  });
});

test("an unconfirmed enrolment expires after an hour, and a new one replaces it", async () => {
  const person = await world.signUp("Eno Enrolled");
  const enroll = async () =>
    (await person.get(mutationOf("enrollSecondFactor", "{ secret }"), { input: { password } }))
      .enrollSecondFactor.secret as string;
  const confirm = (code: string) =>
    person.ask(mutationOf("confirmSecondFactor", "{ codes }"), { input: { code } });
  const [first, second] = [await enroll(), await enroll()];
  expect((await confirm(codeOf(first))).errors![0]!.extensions.code).toBe("BAD_USER_INPUT");
  await world.owner.query(
    "update app_private.second_factors set inserted_at = inserted_at - interval '1 hour' where user_id = $1",
    [person.id],
  );
  expect((await confirm(codeOf(second))).errors![0]!.extensions.code).toBe("BAD_USER_INPUT");
  expect((await confirm(codeOf(await enroll()))).errors).toBeUndefined();
});

test("SQL accepts a time step only from callers that have read the sealed secret", async () => {
  const person = await world.signUp("Sue Statement");
  await enrolled(world, person);
  const { rows } = await world.owner.query(
    "select app_private.second_factor_fits($1, 'step:99999999999:' || repeat('0', 64)) as fits",
    [person.id],
  );
  expect(rows).toEqual([{ fits: false }]);
});
