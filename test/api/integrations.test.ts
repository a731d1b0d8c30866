/**
 * Integrations: refusals, and each application against a server that implements its API. Permissions:
 * outsideMatrix.test.ts.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { request } from "node:https";
import ICAL from "ical.js";
import { OAuth2Server } from "oauth2-mock-server";
import pino from "pino";
import { testCompute } from "../harness/compute.ts";
import { Webhook } from "standardwebhooks";
import { createSeal, credentialsOf } from "../../src/secrets/seal.ts";
import { startDispatcher } from "../../src/webhooks/dispatcher.ts";
import { secretKeys, type Person } from "../harness/api.ts";
import { createBuyer, invite } from "../harness/deals.ts";
import { createLead, type Portfolio, startPortfolio } from "../harness/portfolio.ts";
import { mutationOf } from "../harness/records.ts";
import { startSmtpServer, type SmtpServer } from "../tasks/smtp.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";
import { startReceiver, status, type Receiver } from "../webhooks/receiver.ts";
import { until } from "../harness/until.ts";
import { testCertificate } from "../harness/certificate.ts";

const compute = testCompute();
let world: Portfolio;
let bea: Person;
let receiver: Receiver;
let provider: OAuth2Server;
let smtp: SmtpServer;
let outbox: Outbox;
let drafts = 0;
const oauth = () => ({ issuer: provider.issuer.url!, clientId: "plat", clientSecret: "shh" });

const fields = `id name status statusReason config externalAccount connectedAt lastRefreshedAt lastSyncAt lastError version
  app { key authType } allowedTransitions { to }`;
const operation =
  (name: string) =>
  (input: Record<string, unknown>): [string, Record<string, unknown>] => [
    mutationOf(name, `{ ${fields} }`),
    { input },
  ];
const createOwn = operation("createUserIntegration");
const refreshOwn = operation("refreshUserIntegration");
const disableOwn = operation("disableUserIntegration");
const updateOwn = operation("updateUserIntegration");
const create = operation("createOrganizationIntegration");
const refresh = operation("refreshOrganizationIntegration");
const disable = operation("disableOrganizationIntegration");
const remove = operation("deleteOrganizationIntegration");
const gives = async (person: Person, [query, variables]: [string, Record<string, unknown>]): Promise<any> =>
  Object.values(await person.get(query, variables))[0];
const refuses = (person: Person, [query, variables]: [string, Record<string, unknown>]) =>
  person.refused(query, variables);

const sync = (more = {}) => ({
  organizationId: world.harbour.id,
  appKey: "crm_sync",
  name: "Our CRM",
  config: {
    url: receiver.url,
    events: ["lead.created"],
    mapping: {
      mail: "data.email",
      full_name: "{{ data.name | upcase }}",
      kind: "type",
      gone: "data.nothing.there",
    },
  },
  ...more,
});
const account = (more = {}, credentials = { username: "max", password: "open sesame" }) => ({
  appKey: "mail_account",
  config: { host: "localhost", port: smtp.port, from: "max@builder.example", fromName: "Max M.", ...more },
  credentials,
});

/** A page of the service. */
function page(path: string, headers: Record<string, string> = {}, method = "GET") {
  return new Promise<{ status: number; headers: Record<string, any>; text: string }>((done, fail) => {
    request(
      new URL(path, world.url),
      { method, headers, rejectUnauthorized: false, agent: false },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => (text += part));
        response.on("end", () => done({ status: response.statusCode!, headers: response.headers, text }));
      },
    )
      .on("error", fail)
      .end();
  });
}
/** Presses the button of the page that asks for consent to a connection. */
const agree = (path: string) => page(path, {}, "POST");
const jobs = () => runJobs(world.database.ownerUrl, outbox.provider, undefined, undefined, oauth());

beforeAll(async () => {
  provider = new OAuth2Server();
  await provider.issuer.keys.generate("RS256");
  await provider.start(0, "localhost");
  const { cert, key } = await testCertificate();
  [receiver, outbox, smtp] = await Promise.all([
    startReceiver(),
    createOutbox(),
    startSmtpServer({
      cert,
      key,
      authOptional: false,
      onAuth: ({ username, password }, _session, done) =>
        password === "open sesame" ? done(null, { user: username! }) : done(new Error("no")),
    }),
  ]);
  world = await startPortfolio(undefined, { loopbackWebhooks: true, oauth: oauth() });
  bea = await world.signUp("Bea Buyer");
});
afterAll(async () => {
  await world.stop();
  await Promise.all([receiver.close(), smtp.close(), outbox.remove(), provider.stop()]);
});

test("a user sees the available applications and the connected ones", async () => {
  const { max } = world;
  const own = await gives(max, createOwn({ appKey: "calendar_feed" }));
  const { viewer, userIntegrationApps } = await max.get(
    "{ viewer { integrations { id app { key } } } userIntegrationApps { key scope authType available installed configSchema oauthScopes } }",
  );
  expect(viewer.integrations.map((i: any) => i.id)).toContain(own.id);
  expect(userIntegrationApps).toEqual([
    expect.objectContaining({ key: "calendar_feed", authType: "NONE", available: true, installed: true }),
    expect.objectContaining({ key: "mail_account", authType: "BASIC", available: true, installed: false }),
    expect.objectContaining({
      key: "openid_account",
      authType: "OAUTH2",
      available: true,
      oauthScopes: ["openid", "email", "offline_access"],
    }),
  ]);
});

test("invalid input is refused with its path, and stores nothing", async () => {
  const { owen, max } = world;
  const count = async () =>
    (
      await world.owner.query(
        "select (select count(*) from app_public.user_integrations) + (select count(*) from app_public.organization_integrations) as n",
      )
    ).rows[0].n;
  const before = await count();
  const config = sync().config;
  const refusals: [Person, [string, Record<string, unknown>], string, string][] = [
    [max, createOwn({ appKey: "no_such_app" }), "NOT_FOUND", "appKey"],
    [max, createOwn({ appKey: "crm_sync" }), "NOT_FOUND", "appKey"],
    [owen, create(sync({ appKey: "calendar_feed" })), "NOT_FOUND", "appKey"],
    [
      max,
      createOwn({ appKey: "calendar_feed", config: { colour: "red" } }),
      "BAD_USER_INPUT",
      "config.colour",
    ],
    [max, createOwn({ appKey: "calendar_feed", config: [1] }), "BAD_USER_INPUT", "config"],
    [
      max,
      createOwn({ appKey: "calendar_feed", credentials: { token: "mine" } }),
      "BAD_USER_INPUT",
      "credentials.token",
    ],
    [max, createOwn({ ...account(), credentials: undefined }), "BAD_USER_INPUT", "credentials"],
    [
      max,
      createOwn({ ...account(), credentials: { username: "max" } }),
      "BAD_USER_INPUT",
      "credentials.password",
    ],
    [max, createOwn(account({ port: "25" })), "BAD_USER_INPUT", "config.port"],
    [max, createOwn(account({ from: "max" })), "BAD_USER_INPUT", "config.from"],
    [max, createOwn(account({ host: "169.254.169.254" })), "BAD_USER_INPUT", "config.host"],
    [max, createOwn(account({ host: "10.0.0.7" })), "BAD_USER_INPUT", "config.host"],
    [max, createOwn(account({ host: "mail.internal" })), "BAD_USER_INPUT", "config.host"],
    [max, createOwn(account({ host: "8.8.8.8", port: 22 })), "BAD_USER_INPUT", "config.port"],
    [owen, create(sync({ config: undefined })), "BAD_USER_INPUT", "config.url"],
    [
      owen,
      create(sync({ config: { ...config, url: "https://192.168.1.1/hook" } })),
      "BAD_USER_INPUT",
      "config.url",
    ],
    [owen, create(sync({ config: { ...config, url: "http://localhost" } })), "BAD_USER_INPUT", "config.url"],
    [
      owen,
      create(sync({ config: { ...config, events: ["lead.exploded"] } })),
      "BAD_USER_INPUT",
      "config.events",
    ],
    [owen, create(sync({ config: { ...config, events: [] } })), "BAD_USER_INPUT", "config.events"],
    [owen, create(sync({ config: { ...config, mapping: {} } })), "BAD_USER_INPUT", "config.mapping"],
    [
      owen,
      create(sync({ config: { ...config, mapping: { mail: 7 } } })),
      "BAD_USER_INPUT",
      "config.mapping.mail",
    ],
    [
      owen,
      create(sync({ config: { ...config, mapping: { mail: "data..email" } } })),
      "BAD_USER_INPUT",
      "config.mapping.mail",
    ],
    [
      owen,
      create(sync({ config: { ...config, mapping: { mail: "{{ data.email" } } })),
      "BAD_USER_INPUT",
      "config.mapping.mail",
    ],
    [
      owen,
      create(sync({ config: { ...config, mapping: { [`a/b~${"c".repeat(200)}`]: 7 } } })),
      "BAD_USER_INPUT",
      `config.mapping.a/b~${"c".repeat(96)}`,
    ],
    [owen, create(sync({ config: { ...config, events: ["*", 5] } })), "BAD_USER_INPUT", "config.events[1]"],
    [
      max,
      createOwn({ appKey: "calendar_feed", config: { constructor: 1 } }),
      "BAD_USER_INPUT",
      "config.constructor",
    ],
    [owen, create(sync({ name: "x".repeat(301) })), "BAD_USER_INPUT", "name"],
  ];
  for (const [person, mutation, code, field] of refusals)
    expect({ ...(await refuses(person, mutation)), input: mutation[1] }).toMatchObject({
      code,
      field,
      input: mutation[1],
    });
  expect(await count()).toBe(before);
});

test("a calendar feed contains exactly the appointments of its user, until it is disabled", async () => {
  const { owen, max, sam, project, quiet, leads } = world;
  const appointment = async (person: Person, input: Record<string, unknown>) =>
    (
      await person.get(
        "mutation ($input: CreateAppointmentInput!) { createAppointment(input: $input) { id } }",
        {
          input: {
            type: "IN_PERSON_TOUR",
            startsAt: "2031-03-09T06:30:00Z",
            endsAt: "2031-03-09T07:30:00Z",
            timeZone: "America/Toronto",
            ...input,
          },
        },
      )
    ).createAppointment.id as string;
  const mine = await appointment(owen, {
    leadId: leads.maxs.id,
    hostId: max.id,
    title: "See the show home; bring ID, please",
    location: "1 Bay St, Toronto\nSuite 5",
  });
  const cancelled = await appointment(owen, {
    leadId: leads.maxs.id,
    hostId: max.id,
    startsAt: "2031-04-01T15:00:00Z",
    endsAt: "2031-04-01T16:00:00Z",
  });
  // The lead of another member in a project whose members only see their own leads: max must not see its
  // appointment.
  await appointment(owen, { leadId: leads.mias.id, hostId: world.mia.id });
  const ofSam = await appointment(sam, { leadId: leads.sams.id, hostId: sam.id });
  await owen.get("mutation ($input: UpdateAppointmentInput!) { updateAppointment(input: $input) { id } }", {
    input: { id: cancelled, status: "CANCELLED", cancellationReason: "Snow" },
  });
  expect([project.id, quiet.id]).toHaveLength(2);

  const feed = await gives(max, createOwn({ appKey: "calendar_feed", name: "Work" }));
  expect(feed).toMatchObject({ status: "ENABLED", name: "Work", lastError: null });
  const path = new URL(feed.config.feedUrl).pathname;
  expect(path).toMatch(/^\/calendars\/[\w-]{43}\.ics$/);
  const first = await page(path);
  expect(first).toMatchObject({ status: 200, headers: { "content-type": "text/calendar; charset=utf-8" } });
  const events = (text: string) => {
    const calendar = new ICAL.Component(ICAL.parse(text));
    expect(calendar.getFirstPropertyValue("version")).toBe("2.0");
    return calendar.getAllSubcomponents("vevent").map((component) => ({
      event: new ICAL.Event(component),
      status: component.getFirstPropertyValue("status"),
    }));
  };
  const found = events(first.text);
  expect(found.map(({ event, status: shown }) => [event.uid, shown]).sort()).toEqual(
    [
      [`${mine}@plat.example`, "CONFIRMED"],
      [`${cancelled}@plat.example`, "CANCELLED"],
    ].sort(),
  );
  const show = found.find(({ event }) => event.uid.startsWith(mine))!.event;
  expect(show.summary).toBe("See the show home; bring ID, please – Maxs Molly");
  expect(show.location).toBe("1 Bay St, Toronto\nSuite 5");
  expect(show.description).toContain("(America/Toronto)");
  // The night in which the clocks in Toronto go forward: the instant is correct in any time zone of the
  // reader.
  expect(show.startDate.toJSDate().toISOString()).toBe("2031-03-09T06:30:00.000Z");
  expect(show.endDate.toJSDate().toISOString()).toBe("2031-03-09T07:30:00.000Z");
  expect((await page(path, { "if-none-match": first.headers["etag"] })).status).toBe(304);

  await owen.get("mutation ($input: UpdateAppointmentInput!) { updateAppointment(input: $input) { id } }", {
    input: { id: mine, startsAt: "2031-03-10T13:00:00Z", endsAt: "2031-03-10T14:00:00Z" },
  });
  const second = await page(path, { "if-none-match": first.headers["etag"] });
  expect(second.status).toBe(200);
  const moved = events(second.text).find(({ event }) => event.uid === show.uid)!.event;
  expect(moved.sequence).toBeGreaterThan(show.sequence);
  expect(moved.startDate.toJSDate().toISOString()).toBe("2031-03-10T13:00:00.000Z");

  // A seller's feed contains their own appointments; a buyer's, those of the purchase.
  const samsFeed = await gives(sam, createOwn({ appKey: "calendar_feed" }));
  expect(
    events((await page(new URL(samsFeed.config.feedUrl).pathname)).text).map(({ event }) => event.uid),
  ).toEqual([`${ofSam}@plat.example`]);
  const { id: leadId } = await createLead(owen, { projectId: project.id, name: "Bea as a lead" });
  const unit = (
    await owen.get("mutation ($input: CreateUnitInput!) { createUnit(input: $input) { id } }", {
      input: { projectId: project.id, title: "Home 1", number: "1", price: "400000", status: "AVAILABLE" },
    })
  ).createUnit.id;
  const purchase = await createBuyer(owen, project, { leadId, unitId: unit });
  await invite(world, purchase, bea);
  const closing = await appointment(owen, { buyerId: purchase, hostId: owen.id, type: "CLOSING" });
  const beas = await gives(bea, createOwn({ appKey: "calendar_feed" }));
  expect(
    events((await page(new URL(beas.config.feedUrl).pathname)).text).map(({ event }) => event.uid),
  ).toEqual([`${closing}@plat.example`]);

  // The URL is returned on creation and by a refresh, and not stored as plain text.
  const read = async () =>
    (
      await max.get(
        "query ($id: ID!) { userIntegration(id: $id) { status lastSyncAt version config } }",
        feed,
      )
    ).userIntegration;
  const seen = await read();
  expect(seen).toMatchObject({ status: "ENABLED", config: {}, version: feed.version });
  expect(seen.lastSyncAt).not.toBeNull();
  const token = path.slice(11, -4);
  const { rows } = await world.owner.query(
    "select count(*)::int as n from app_public.events e where e.data::text like $1 or e.changes::text like $1",
    [`%${token}%`],
  );
  expect(rows[0].n).toBe(0);
  expect((await gives(max, refreshOwn({ id: feed.id }))).config.feedUrl).toBe(feed.config.feedUrl);
  expect((await page("/calendars/" + "A".repeat(43) + ".ics")).status).toBe(404);
  expect(await gives(max, disableOwn({ id: feed.id, reason: "On holiday" }))).toMatchObject({
    status: "DISABLED",
    statusReason: "On holiday",
  });
  expect((await page(path)).status).toBe(404);
  expect(await gives(max, refreshOwn({ id: feed.id }))).toMatchObject({
    status: "ENABLED",
    statusReason: null,
  });
  expect((await page(path)).status).toBe(200);
  await world.owner.query("update app_public.users set status = 'SUSPENDED' where id = $1", [sam.id]);
  expect((await page(new URL(samsFeed.config.feedUrl).pathname)).status).toBe(404);
  await world.owner.query("update app_public.users set status = 'ACTIVE' where id = $1", [sam.id]);
});

test("mail is sent from the user's own account, and from the service's with a visible error if that fails", async () => {
  const { max, project } = world;
  await jobs();
  await outbox.take();
  const made = await gives(max, createOwn(account({}, { username: "max", password: "guessed" })));
  expect(made).toMatchObject({
    status: "PENDING",
    lastError: "The mail server rejected the user name and password.",
    connectedAt: null,
  });
  const refused = await refuses(max, refreshOwn({ id: made.id }));
  expect(refused).toMatchObject({ code: "PROVIDER_ERROR", provider: "mail_account", retryable: false });
  // A configuration that does not work is not stored.
  expect(await refuses(max, updateOwn({ id: made.id, config: account({ port: 1 }).config }))).toMatchObject({
    code: "PROVIDER_ERROR",
    retryable: true,
  });
  const fixed = await gives(max, updateOwn({ id: made.id, credentials: account().credentials }));
  expect(fixed).toMatchObject({
    status: "ENABLED",
    lastError: null,
    externalAccount: "max@builder.example",
    config: account().config,
  });
  expect(JSON.stringify([made, fixed, refused])).not.toMatch(/sesame|guessed/);

  const sent = async () => {
    const { id: leadId } = await createLead(max, {
      projectId: project.id,
      name: "Lena Lead",
      email: `lena.${++drafts}@example.com`,
      subscribed: true,
    });
    const { suggestLeadEmail: draft } = await max.get(
      "mutation ($input: SuggestLeadEmailInput!) { suggestLeadEmail(input: $input) { id status } }",
      { input: { leadId, purpose: "Follow up" } },
    );
    await world.owner.query("select app_private.send_generation($1, $2)", [draft.id, max.id]);
    await jobs();
  };
  await world.owner.query("update app_public.user_integrations set last_sync_at = null where id = $1", [
    made.id,
  ]);
  await sent();
  const { rows: synced } = await world.owner.query(
    "select from app_public.user_integrations where id = $1 and last_sync_at is not null",
    [made.id],
  );
  expect(synced).toHaveLength(1);
  expect(smtp.mails).toHaveLength(1);
  expect(smtp.mails[0]).toMatchObject({
    user: "max",
    encrypted: true,
    to: [expect.stringContaining("lena.")],
    email: { from: { address: "max@builder.example", name: "Max M." } },
  });
  // Under the user's own address, with the unsubscribe header of marketing mail.
  expect(smtp.mails[0]!.email.headers).toContainEqual(
    expect.objectContaining({
      key: "list-unsubscribe",
      value: expect.stringMatching(/^<https:\/\/plat\.example\/unsubscribe\/marketing\./),
    }),
  );
  expect(smtp.mails[0]!.email.text).toContain(
    "Unsubscribe from marketing emails of Harbour Homes:\nhttps://",
  );
  expect(await outbox.take()).toEqual([]);

  // After a change of the password at the server, mail is still sent, and the account has the status of the
  // error.
  await world.owner.query(
    "update app_private.integration_secrets set sealed = $2 where integration_id = $1",
    [
      made.id,
      createSeal(secretKeys).seal(
        JSON.stringify({ username: "max", password: "of old" }),
        credentialsOf(made.id),
      ),
    ],
  );
  await sent();
  expect(smtp.mails).toHaveLength(1);
  expect((await outbox.take()).map((mail) => mail.from?.address)).toEqual(["no-reply@plat.example"]);
  const read = async () =>
    (await max.get("query ($id: ID!) { userIntegration(id: $id) { status statusReason lastError } }", made))
      .userIntegration;
  expect(await read()).toMatchObject({
    status: "ERROR",
    statusReason: expect.stringContaining("was sent from the address of the service instead"),
  });
  const { rows } = await world.owner.query(
    `select sealed from app_private.integration_secrets where integration_id = $1
     union all select concat(e.data, e.changes) from app_public.events e where e.subject_id = $1`,
    [made.id],
  );
  for (const { sealed } of rows) expect(sealed).not.toMatch(/sesame|guessed|of old/);
});

test("a sync sends signed events with the fields of the receiver, and retries until they are accepted", async () => {
  const { owen, project, harbour } = world;
  receiver.answers(status(503));
  const made = await gives(owen, create(sync()));
  expect(made).toMatchObject({
    status: "PENDING",
    lastError: "The receiver answered the test event with 503.",
  });
  expect(await refuses(owen, refresh({ id: made.id }))).toMatchObject({
    code: "PROVIDER_ERROR",
    provider: "crm_sync",
    retryable: true,
  });
  receiver.answers(status(204));
  const enabled = await gives(owen, refresh({ id: made.id }));
  expect(enabled).toMatchObject({
    status: "ENABLED",
    externalAccount: new URL(receiver.url).host,
    lastError: null,
  });
  const { secret } = enabled.config;
  expect(secret).toMatch(/^whsec_/);
  const hidden = await owen.get("query ($id: ID!) { organization(id: $id) { webhooks { id } } }", harbour);
  expect(hidden.organization.webhooks).toEqual([]);

  const dispatcher = await startDispatcher({
    connectionString: world.database.workerUrl,
    seal: createSeal(secretKeys),
    loopback: true,
    compute,
    log: pino({ level: "silent" }),
  });
  try {
    const came = receiver.messages.length;
    const arrived = async (wanted: number) => {
      await until(
        () => receiver.messages.length,
        (length) => length >= came + wanted,
      );
      return receiver.messages.at(-1)!;
    };
    receiver.answers(status(500));
    await createLead(owen, { projectId: project.id, name: "Nora New", email: "nora@example.com" });
    const message = await arrived(1);
    expect(message.event).toEqual({
      mail: "nora@example.com",
      full_name: "NORA NEW",
      kind: "lead.created",
      gone: null,
    });
    expect(() => new Webhook(secret).verify(message.text, message.headers)).not.toThrow();
    const reaches = (isSo: (found: any) => boolean) =>
      until(async () => {
        const { organizationIntegration } = await owen.get(
          "query ($id: ID!) { organizationIntegration(id: $id) { status statusReason lastError lastSyncAt } }",
          made,
        );
        return organizationIntegration;
      }, isSo);
    await reaches(({ lastError }) => lastError === "The receiver did not take the last attempt.");
    // A refresh retries waiting events at once, after a test event.
    receiver.answers(status(204));
    await gives(owen, refresh({ id: made.id }));
    const again = await arrived(3);
    expect(again.id).toBe(message.id);
    const well = await reaches(({ lastError, lastSyncAt }) => lastError === null && lastSyncAt !== null);
    expect(well.status).toBe("ENABLED");

    // A permanent failure: ERROR, and a ticket with the action RETRY.
    receiver.answers(status(410));
    await createLead(owen, { projectId: project.id, name: "Olaf Old", email: "olaf@example.com" });
    const failed = await reaches((found) => found.status === "ERROR");
    expect(failed.statusReason).toBe("The receiver answered 410: it is gone for good.");
    const ticketOf = async () =>
      (
        await world.owner.query(
          "select id, kind, status, action_error, available_actions::text as actions from app_public.escalation_tickets where subject_id = $1 order by id desc",
          [made.id],
        )
      ).rows[0];
    const ticket = await ticketOf();
    expect(ticket).toMatchObject({ kind: "INTEGRATION_FAILURE", status: "OPEN", actions: "{RETRY,DISMISS}" });
    const resolve = () =>
      owen.get(
        "mutation ($input: ResolveEscalationTicketInput!) { resolveEscalationTicket(input: $input) { status } }",
        { input: { id: ticket.id, action: "RETRY" } },
      );
    await resolve();
    await jobs();
    expect(await ticketOf()).toMatchObject({
      status: "FAILED",
      action_error: "The receiver answered the test event with 410.",
    });
    receiver.answers(status(204));
    await resolve();
    await jobs();
    expect(await ticketOf()).toMatchObject({ status: "RESOLVED" });
    expect((await reaches((found) => found.status === "ENABLED")).lastError).toBeNull();

    // A disabled integration sends nothing; a deleted one leaves no data.
    await gives(owen, disable({ id: made.id }));
    const before = receiver.messages.length;
    await createLead(owen, { projectId: project.id, name: "Quentin Quiet", email: "quentin@example.com" });
    await world.owner.query("select app_private.fan_out_webhooks(500)");
    expect(
      (
        await world.owner.query(
          "select count(*)::int as n from app_private.webhook_queue q join app_public.webhooks w on w.id = q.webhook_id where w.integration_id = $1",
          [made.id],
        )
      ).rows[0].n,
    ).toBe(0);
    await gives(owen, remove({ id: made.id }));
    expect(receiver.messages).toHaveLength(before);
    expect(await refuses(owen, refresh({ id: made.id }))).toMatchObject({ code: "NOT_FOUND" });
    // Events report the creation, failure, disabling and deletion of the integration, and not of its internal
    // webhook.
    const eventsOfRecord = async (name: string) =>
      (
        await owen.get(
          `query ($id: ID!, $name: String!) { eventsConnection(filter: { organizationId: $id, names: [$name] }) { totalCount } }`,
          { id: harbour.id, name },
        )
      ).eventsConnection.totalCount;
    expect(await eventsOfRecord("webhook.*")).toBe(0);
    expect(await eventsOfRecord("organization_integration.*")).toBeGreaterThan(4);
    const { rows: hooks } = await world.owner.query(
      "select id from app_public.webhooks where integration_id = $1",
      [made.id],
    );
    const { rows: traces } = await world.owner.query("select from app_public.events where subject_id = $1", [
      hooks[0].id,
    ]);
    expect(traces).toEqual([]);
  } finally {
    await dispatcher.stop();
  }
});

test("OAuth 2: a single consent with PKCE, sealed tokens, refresh before expiry, and failures", async () => {
  const { owen, max, harbour } = world;
  const made = await gives(max, createOwn({ appKey: "openid_account" }));
  expect(made).toMatchObject({
    status: "PENDING",
    statusReason: expect.stringContaining("authorizationUrl"),
  });
  const consent = new URL(made.config.authorizationUrl);
  expect(Object.fromEntries(consent.searchParams)).toMatchObject({
    response_type: "code",
    client_id: "plat",
    code_challenge_method: "S256",
    redirect_uri: "https://plat.example/integrations/callback",
    scope: "openid email offline_access",
  });
  const led = async (url: string | URL) => {
    const { headers } = await fetch(url, { redirect: "manual" });
    const back = new URL(headers.get("location")!);
    return back.pathname + back.search;
  };
  const callback = await led(consent);
  const forged = callback.replace(/state=[^&]{20}/, "state=AAAAAAAAAAAAAAAAAAAA");
  for (const path of [forged, "/integrations/callback"])
    expect([(await page(path)).status, (await agree(path)).status]).toEqual([403, 403]);
  // The page shows whose integration is being connected, and nothing happens without consent.
  const question = await page(callback);
  expect(question.status).toBe(200);
  expect(question.text).toContain("Max");
  expect(question.text).toContain(max.email);
  expect(question.headers).toMatchObject({
    "content-security-policy": expect.stringContaining("frame-ancestors 'none'"),
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
  });
  expect(
    (await max.get(`query ($id: ID!) { userIntegration(id: $id) { status } }`, { id: made.id }))
      .userIntegration,
  ).toEqual({ status: "PENDING" });
  // Of two concurrent consents, one is accepted. The mock checks the verifier against the challenge.
  const landed = await Promise.all([agree(callback), agree(callback)]);
  expect(landed.map((answer) => answer.status).sort()).toEqual([200, 403]);
  expect(landed.map((answer) => answer.text).join()).toContain("The application is connected");
  expect((await page(callback)).status).toBe(403);
  const read = async () =>
    (await max.get(`query ($id: ID!) { userIntegration(id: $id) { ${fields} } }`, { id: made.id }))
      .userIntegration;
  const connected = await read();
  expect(connected).toMatchObject({
    status: "ENABLED",
    statusReason: null,
    externalAccount: "johndoe",
    config: {},
  });
  const secretOf = async () =>
    (
      await world.owner.query(
        "select sealed, expires_at, next_refresh_at from app_private.integration_secrets where integration_id = $1",
        [made.id],
      )
    ).rows[0];
  const seal = createSeal(secretKeys);
  const secret = await secretOf();
  expect(JSON.parse(seal.open(secret.sealed, credentialsOf(made.id)))).toMatchObject({
    accessToken: expect.any(String),
    refreshToken: expect.any(String),
  });
  expect(secret.next_refresh_at < secret.expires_at).toBe(true);

  const due = () =>
    world.owner.query(
      "update app_private.integration_secrets set next_refresh_at = now() where integration_id = $1",
      [made.id],
    );
  const keep = async () => {
    await world.owner.query("select app_private.add_job('integrations__refresh')");
    await jobs();
  };
  await due();
  await keep();
  expect((await secretOf()).sealed).not.toBe(secret.sealed);
  expect(await read()).toMatchObject({ status: "ENABLED", version: connected.version });

  // While the provider is unavailable, the tokens are kept and refreshing is retried with backoff.
  const answerWith = (statusCode: number, body: Record<string, unknown>) =>
    provider.service.once("beforeResponse", (response: any) => Object.assign(response, { statusCode, body }));
  answerWith(503, {});
  await due();
  await keep();
  expect(await read()).toMatchObject({
    status: "ENABLED",
    lastError: "The provider returned an unexpected response.",
  });
  expect((await secretOf()).next_refresh_at.getTime()).toBeGreaterThan(Date.now());
  answerWith(503, {});
  expect(await refuses(max, refreshOwn({ id: made.id }))).toMatchObject({
    code: "PROVIDER_ERROR",
    provider: "openid_account",
    retryable: true,
  });
  // The consent was withdrawn: ERROR, and the next refresh asks for it again.
  answerWith(400, { error: "invalid_grant" });
  await due();
  await keep();
  expect(await read()).toMatchObject({
    status: "ERROR",
    lastError: expect.stringContaining("consent again"),
  });
  expect((await secretOf()).sealed).toBeNull();
  const again = await gives(max, refreshOwn({ id: made.id }));
  expect(again).toMatchObject({ status: "ERROR", config: { authorizationUrl: expect.any(String) } });
  const denied = new URL(await led(again.config.authorizationUrl), world.url);
  denied.searchParams.delete("code");
  denied.searchParams.set("error", "access_denied");
  expect((await page(denied.pathname + denied.search)).status).toBe(502);
  const anew = await gives(max, refreshOwn({ id: made.id }));
  expect((await agree(await led(anew.config.authorizationUrl))).status).toBe(200);
  expect(await read()).toMatchObject({ status: "ENABLED", lastError: null });

  // For an integration of an organization, a user who has lost the permission cannot complete the consent.
  const shared = await gives(
    world.ada,
    create({ organizationId: harbour.id, appKey: "openid_organization" }),
  );
  const way = await led(shared.config.authorizationUrl);
  expect((await page(way)).text).toMatch(/organization <strong>Harbour.*Ada/);
  await world.owner.query(
    "update app_public.organization_user_connections set role = 'MEMBER' where user_id = $1",
    [world.ada.id],
  );
  expect([(await page(way)).status, (await agree(way)).status]).toEqual([403, 403]);
  expect(
    (
      await owen.get(
        "query ($id: ID!) { organizationIntegration(id: $id) { status connectedBy { id } } }",
        shared,
      )
    ).organizationIntegration,
  ).toEqual({ status: "DISABLED", connectedBy: { id: world.ada.id } });

  // The key that sealed its credentials no longer exists.
  await world.owner.query(
    "update app_private.integration_secrets set sealed = $2 where integration_id = $1",
    [made.id, seal.seal("{}", credentialsOf(made.id)).replace("v2:test.", "v2:other.")],
  );
  await keep();
  expect(await refuses(max, refreshOwn({ id: made.id }))).toMatchObject({
    code: "PROVIDER_ERROR",
    message: "The credentials can no longer be decrypted; enter them again.",
  });
});

test("credentials of another integration are not used, and the integration gets an error", async () => {
  const feed = async (person: Person) =>
    (await person.get(...createOwn({ appKey: "calendar_feed" }))).createUserIntegration;
  const [mine, theirs] = [await feed(world.mia), await feed(world.olga)];
  const sealedOf = async ({ id }: { id: string }) =>
    (
      await world.owner.query(
        "select sealed from app_private.integration_secrets where integration_id = $1",
        [id],
      )
    ).rows[0].sealed as string;
  await world.owner.query(
    "update app_private.integration_secrets set sealed = $2 where integration_id = $1",
    [mine.id, await sealedOf(theirs)],
  );
  expect(await refuses(world.mia, refreshOwn({ id: mine.id }))).toMatchObject({
    code: "PROVIDER_ERROR",
    message: "The credentials can no longer be decrypted; enter them again.",
  });
  expect(await gives(world.olga, refreshOwn({ id: theirs.id }))).toMatchObject({ id: theirs.id });
});

test("repeating the request creates one integration", async () => {
  const [query, variables] = createOwn({ appKey: "calendar_feed", idempotencyKey: "once" });
  const [one, two] = await Promise.all([world.olga.get(query, variables), world.olga.get(query, variables)]);
  expect(two.createUserIntegration.id).toBe(one.createUserIntegration.id);
  const third = await world.olga.get(query, variables);
  expect(third.createUserIntegration.id).toBe(one.createUserIntegration.id);
});

test("an integration with an internal error does not prevent others from being refreshed, and is logged", async () => {
  const feed = async (person: Person) =>
    (await person.get(...createOwn({ appKey: "calendar_feed" }))).createUserIntegration.id as string;
  const [poisoned, ...others] = [await feed(world.max), await feed(world.ada), await feed(world.owen)];
  const sealed = async () =>
    (
      await world.owner.query<{ sealed: string }>(
        "select sealed from app_private.integration_secrets where integration_id = any ($1) order by integration_id",
        [others],
      )
    ).rows.map((row) => row.sealed);
  await world.owner.query(
    `create function pg_temp.refuse() returns trigger language plpgsql as $$ begin raise exception 'poisoned'; end $$;
     create trigger poisoned before update of sealed on app_private.integration_secrets for each row
       when (old.integration_id = '${poisoned}') execute function pg_temp.refuse()`,
  );
  try {
    // The failing one first.
    await world.owner.query(
      `update app_private.integration_secrets set next_refresh_at = now() - case integration_id when $1 then interval '1 hour' else interval '1 minute' end
       where integration_id = any ($2)`,
      [poisoned, [poisoned, ...others]],
    );
    const before = await sealed();
    await world.owner.query("select app_private.add_job('integrations__refresh')");
    await jobs();
    const after = await sealed();
    expect(after.filter((text, i) => text !== before[i])).toHaveLength(2);
    const { rows } = await world.owner.query(
      "delete from graphile_worker._private_jobs j using graphile_worker._private_tasks t where t.id = j.task_id and t.identifier = 'integrations__refresh' returning j.last_error",
    );
    expect(rows).toEqual([{ last_error: `Integration ${poisoned} could not be refreshed.` }]);
  } finally {
    await world.owner.query("drop trigger poisoned on app_private.integration_secrets");
  }
});
