import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createSeal, secretOfWebhook } from "../../src/secrets/seal.ts";
import { secretKeys, type Person } from "../harness/api.ts";
import { ask, type Variables, outcomes } from "../harness/matrix.ts";
import { startWorld, type World } from "../harness/world.ts";
import { until } from "../harness/until.ts";

// Permissions for webhooks, and refusals. Sending of events: test/webhooks.

let world: World;
let everybody: Record<string, Person>;

beforeAll(async () => {
  world = await startWorld(undefined, { loopbackWebhooks: true });
  const { owen, ada, max, olga, anonymous } = world;
  everybody = { owen, ada, max, olga, anonymous };
});
afterAll(() => world.stop());

const creation =
  "mutation ($input: CreateWebhookInput!) { createWebhook(input: $input) { id secret secretPrefix } }";
const input = (rest: Record<string, unknown> = {}) => ({
  input: {
    organizationId: world.harbour.id,
    url: "https://localhost:9/hooks",
    events: ["lead.created"],
    ...rest,
  },
});
const create = async (rest?: Record<string, unknown>) =>
  (await world.owen.get(creation, input(rest))).createWebhook as { id: string; secret: string };

/** The outcomes for all viewers: yes, or the code of the refusal. */
const tried = (document: string, variables: Variables) => outcomes(everybody, ask(document, variables));

describe("owners and admins only", () => {
  test("create", async () => {
    expect(await tried(creation, () => input())).toEqual({
      owen: "yes",
      ada: "yes",
      max: "FORBIDDEN",
      olga: "NOT_FOUND",
      anonymous: "UNAUTHENTICATED",
    });
  });

  test.each([
    [
      "update",
      'mutation ($id: ID!) { updateWebhook(input: { id: $id, description: "CRM", events: ["*"] }) { id } }',
    ],
    ["rotate", "mutation ($id: ID!) { rotateWebhookSecret(input: { id: $id }) { id } }"],
    ["test", "mutation ($id: ID!) { sendTestWebhook(input: { id: $id }) { id } }"],
    ["redeliver", 'mutation ($id: ID!) { redeliverEvents(input: { id: $id, fromSequence: "1" }) { id } }'],
    [
      "delete",
      "mutation ($id: ID!) { deleteWebhook(input: { id: $id }) { id deleted organization { id } } }",
    ],
  ])("%s", async (_name, document) => {
    expect(await tried(document, async () => ({ id: (await create()).id }))).toEqual({
      owen: "yes",
      ada: "yes",
      max: "NOT_FOUND",
      olga: "NOT_FOUND",
      anonymous: "UNAUTHENTICATED",
    });
  });

  test("read", async () => {
    const { id } = await create();
    await world.owen.get("mutation ($id: ID!) { sendTestWebhook(input: { id: $id }) { id } }", { id });
    const document = `query ($id: ID!, $organization: ID!) {
      webhook(id: $id) { url failureCount deliveries(first: 1, status: PENDING) { id status } }
      organization(id: $organization) { webhooks(first: 1) { id } } }`;
    for (const [name, person] of Object.entries(everybody)) {
      const { webhook, organization } = await person.sees(document, { id, organization: world.harbour.id });
      const mayRead = name === "owen" || name === "ada";
      expect([name, webhook?.deliveries.length, organization?.webhooks?.length]).toEqual(
        mayRead ? [name, 1, 1] : [name, undefined, undefined],
      );
    }
    const { organization } = await everybody.max!.get(document, { id, organization: world.harbour.id });
    expect(organization).toEqual({ webhooks: null });
    const { rows } = await world.owner.query(
      "select id from app_public.webhook_deliveries where webhook_id = $1",
      [id],
    );
    for (const [name, person] of Object.entries(everybody))
      expect([
        name,
        (await person.sees("query ($id: ID!) { webhookDelivery(id: $id) { id } }", { id: rows[0].id }))
          .webhookDelivery,
      ]).toEqual([name, name === "owen" || name === "ada" ? { id: rows[0].id } : null]);
  });
});

describe("the secret", () => {
  test("is shown once, and stored sealed", async () => {
    const { id, secret } = await create();
    const { webhook } = await world.owen.get(
      "query ($id: ID!) { webhook(id: $id) { secret secretPrefix } }",
      { id },
    );
    expect(webhook).toEqual({ secret: null, secretPrefix: secret.slice(0, 12) });
    const { rows } = await world.owner.query(
      "select sealed from app_private.webhook_secrets where webhook_id = $1",
      [id],
    );
    expect(rows[0].sealed).not.toContain(secret.slice(6));
    expect(createSeal(secretKeys).open(rows[0].sealed, secretOfWebhook(id))).toBe(secret);
    const { rows: events } = await world.owner.query(
      "select count(*)::int as amount from app_public.events where data::text like '%' || $1 || '%'",
      [secret],
    );
    expect(events).toEqual([{ amount: 0 }]);
  });

  test("is shown again to a repeated request under its idempotency key", async () => {
    const rest = { idempotencyKey: "webhook once" };
    expect(await create(rest)).toEqual(await create(rest));
  });

  test("is bound to the webhook also when it is rotated, for any spelling of its id", async () => {
    const { id } = await create();
    const { rotateWebhookSecret } = await world.owen.get(
      "mutation ($input: RotateWebhookSecretInput!) { rotateWebhookSecret(input: $input) { secret } }",
      { input: { id: id.toUpperCase() } },
    );
    const { rows } = await world.owner.query(
      "select sealed, previous_sealed from app_private.webhook_secrets where webhook_id = $1",
      [id],
    );
    const seal = createSeal(secretKeys);
    expect(seal.open(rows[0].sealed, secretOfWebhook(id))).toBe(rotateWebhookSecret.secret);
    expect(seal.open(rows[0].previous_sealed, secretOfWebhook(id))).toMatch(/^whsec_/);
    expect(() => seal.open(rows[0].sealed, secretOfWebhook(id.replace(/.$/, "g")))).toThrow("another row");
  });
});

describe("refusals", () => {
  test.each([
    ["http://example.com/", "url"],
    ["https://10.0.0.1/", "url"],
    ["https://169.254.169.254/", "url"],
    ["https://user:word@8.8.8.8/", "url"],
    ["https://8.8.8.8:22/", "url"],
    ["https://nobody.invalid/", "url"],
  ])("the address %s, at creation and at a change", async (url, field) => {
    expect(await world.owen.refused(creation, input({ url }))).toMatchObject({
      code: "BAD_USER_INPUT",
      field,
    });
    const { id } = await create();
    expect(
      await world.owen.refused(
        "mutation ($id: ID!, $url: URL!) { updateWebhook(input: { id: $id, url: $url }) { id } }",
        {
          id,
          url,
        },
      ),
    ).toMatchObject({ code: "BAD_USER_INPUT", field });
  });

  test.each([
    [["lead.exploded"]],
    [["leads.created"]],
    [["lead"]],
    [["*.created"]],
    [["lead.created.*"]],
    [[""]],
    [[]],
  ])("the events %j", async (events) => {
    expect(await world.owen.refused(creation, input({ events }))).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "events",
    });
  });

  test("transitions that its status does not allow", async () => {
    const { id } = await create();
    const set =
      "mutation ($id: ID!, $status: WebhookStatus!) { updateWebhook(input: { id: $id, status: $status }) { status } }";
    expect(await world.owen.refused(set, { id, status: "FAILING" })).toMatchObject({
      code: "INVALID_TRANSITION",
    });
    for (const status of ["PAUSED", "ENABLED", "DISABLED"])
      expect(await world.owen.get(set, { id, status })).toEqual({ updateWebhook: { status } });
    expect(await world.owen.refused(set, { id, status: "PAUSED" })).toMatchObject({
      code: "INVALID_TRANSITION",
    });
    expect(
      await world.owen.refused(
        'mutation ($id: ID!) { redeliverEvents(input: { id: $id, fromSequence: "1" }) { id } }',
        {
          id,
        },
      ),
    ).toMatchObject({ code: "CONFLICT" });
  });

  test.each([
    ["0", null, "fromSequence"],
    ["-1", null, "fromSequence"],
    ["one", null, "fromSequence"],
    ["999999999", null, "fromSequence"],
    ["2", "1", "toSequence"],
    ["1", "999999999", "toSequence"],
  ])("the range from %s to %s", async (fromSequence, toSequence, field) => {
    const { id } = await create();
    expect(
      await world.owen.refused(
        "mutation ($input: RedeliverEventsInput!) { redeliverEvents(input: $input) { id } }",
        {
          input: { id, fromSequence, toSequence },
        },
      ),
    ).toMatchObject({ code: "BAD_USER_INPUT", field });
  });

  test("an invalid grace period", async () => {
    const { id } = await create();
    for (const graceHours of [-1, 721])
      expect(
        await world.owen.refused(
          "mutation ($input: RotateWebhookSecretInput!) { rotateWebhookSecret(input: $input) { id } }",
          { input: { id, graceHours } },
        ),
      ).toMatchObject({ code: "BAD_USER_INPUT", field: "graceHours" });
  });

  test("more than fifty per organization", async () => {
    const { errors } = await until(
      () => world.owen.ask(creation, input()),
      (answer) => answer.errors,
    );
    expect(errors![0]!.extensions).toMatchObject({ code: "LIMIT_EXCEEDED", limit: 50 });
  });
});

test("deleting a webhook removes its secret and cursor", async () => {
  const { rows } = await world.owner.query(
    `select count(*)::int as amount from app_public.webhooks w
     where w.deleted_at is not null and (exists (select from app_private.webhook_secrets s where s.webhook_id = w.id)
       or exists (select from app_private.webhook_progress p where p.webhook_id = w.id))`,
  );
  expect(rows).toEqual([{ amount: 0 }]);
});
