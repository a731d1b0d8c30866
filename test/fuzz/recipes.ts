/**
 * Inputs that random generation does not find: their records must be in a certain state, or their texts have a
 * special format.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Person } from "../harness/api.ts";
import { representative, type Payments } from "../harness/payments.ts";
import { mutationOf } from "../harness/records.ts";
import { codeOf } from "../harness/secondFactor.ts";
import { password, setConfirmed } from "../harness/signUp.ts";
import { until } from "../harness/until.ts";
import type { Player, Recipe } from "./fuzzer.ts";

type Input = Record<string, unknown>;

const csv = (text: string) => `data:text/csv;name=fuzz.csv;base64,${Buffer.from(text).toString("base64")}`;
const name = () => `Fuzz ${randomBytes(4).toString("hex")}`;
const email = () => `${name().replace(" ", ".").toLowerCase()}@example.com`;

/** A slow step, so that its executions can be paused. */
const waiting = () => ({
  name: name(),
  subjectType: "LEAD",
  trigger: { type: "EVENT", event: "lead.created" },
  steps: [
    { type: "ADD_TAG", config: { tag: "new" } },
    { type: "WAIT", waitSeconds: 3600 },
  ],
  reentry: "ALWAYS",
  conditions: undefined,
  projectId: undefined,
});
const webhook = () => ({ url: "https://93.184.215.14/hook", events: ["lead.*"], projectId: undefined });

/**
 * @param bosses owners by organization id: they execute preparations that the player may not
 * @param work executes queued jobs, and events of the payment processor
 * @param receiver a URL that accepts deliveries of integrations
 * @param engineRuns whether executions of workflows are processed meanwhile
 */
export function recipes(
  { owner, mia, harbour }: Payments,
  bosses: ReadonlyMap<string, Player>,
  work: () => Promise<void>,
  receiver: string,
  engineRuns: boolean,
): Record<string, Recipe> {
  const homeOf = ({ home }: Player) => home ?? harbour.id;
  const bossOf = (player: Player) => (bosses.get(homeOf(player)) ?? player).person;
  const inHome: Recipe = (player) => ({ organizationId: homeOf(player) });

  /** Fields from a random row of the query for the player's organization; `$2` is the player. */
  const find = async (player: Player, query: string): Promise<Input> => {
    const { rows } = await owner.query<{ input: Input }>(
      `with home as (select $1::uuid as id, $2::uuid as player)
       select to_json(r)::jsonb as input from (${query}) r order by random() limit 1`,
      [homeOf(player), player.person.id],
    );
    // Null fields are omitted.
    return Object.fromEntries(
      Object.entries(rows[0]?.input ?? {}).map(([key, value]) => [key, value ?? undefined]),
    );
  };
  const found =
    (query: string, more: Input = {}): Recipe =>
    async (player) => ({ ...(await find(player, query)), ...more });
  const ofHome = "organization_id in (select id from home)";

  const run = async (
    person: Person,
    field: string,
    input: Input,
    selection = "{ id }",
  ): Promise<{ id?: string }> =>
    (await person.ask(mutationOf(field, selection), { input })).data?.[field] ?? {};
  /** Executes an operation as the same player first, and uses its record. */
  const after =
    (field: string, input: Recipe, more: Input = {}): Recipe =>
    async (player) => {
      const { id } = await run(player.person, field, { ...(await inHome(player)), ...(await input(player)) });
      return { id, expectedVersion: undefined, ...more };
    };
  /** The same as the owner of the organization, if the player may use records of others. */
  const afterBoss =
    (field: string, input: Recipe, more: Input = {}): Recipe =>
    async (player) => {
      const made = await run(bossOf(player), field, await input(player));
      return { id: made.id, expectedVersion: undefined, ...more };
    };
  /** A secret from a mail, with a separate row: the statement's $1 is its hash, $2 the player. */
  const secret =
    (statement: string, more: Input = {}): Recipe =>
    async ({ person }) => {
      const token = randomBytes(16).toString("hex");
      if (person.id) await owner.query(statement, [createHash("sha256").update(token).digest(), person.id]);
      return { token, ...more };
    };

  const someProject = `select id as "projectId" from app_public.projects where ${ofHome} and deleted_at is null and status = 'SELLING'`;
  const freeHome = `select u.id as "unitId", null as "lotId", l.id as "leadId", null as "reservationId", null as "expectedVersion"
    from app_public.units u join app_public.leads l using (project_id)
    where u.status = 'AVAILABLE' and u.deleted_at is null and l.deleted_at is null and l.status not in ('CONVERTED', 'LOST')
      and u.price is not null and u.${ofHome}`;
  const integration = (status: string[]) =>
    `select id, null as "expectedVersion" from app_public.organization_integrations
     where status = any ('{${status.join(",")}}') and ${ofHome}`;
  const ownIntegration = (status: string[]) =>
    `select i.id, null as "expectedVersion" from app_public.user_integrations i, home
     where i.status = any ('{${status.join(",")}}') and i.user_id = home.player`;
  const feed: Recipe = () => ({
    appKey: "calendar_feed",
    projectId: undefined,
    config: undefined,
    credentials: undefined,
  });

  /** A waiting execution, optionally paused. */
  const execution =
    (status: "RUNNING" | "PAUSED"): Recipe =>
    async (player) => {
      const query = `select id, null as "expectedVersion" from app_public.workflow_executions where status = '${status}' and ${ofHome}`;
      const there = await find(player, query);
      if (there.id) return there;
      const boss = bossOf(player);
      const workflow = await run(boss, "createWorkflow", { ...waiting(), organizationId: homeOf(player) });
      await run(boss, "enableWorkflow", { id: workflow.id });
      const { subjectId } = await find(
        player,
        `select id as "subjectId" from app_public.leads where deleted_at is null and ${ofHome}`,
      );
      const { id } = await run(boss, "createWorkflowExecution", { workflowId: workflow.id, subjectId });
      // The id is undefined if the start was refused.
      if (engineRuns && id)
        await until(
          () => find(player, `select status from app_public.workflow_executions where id = '${id}'`),
          ({ status: now }) => now === "RUNNING",
        );
      if (status === "PAUSED") await run(boss, "pauseWorkflowExecution", { id });
      return { id, expectedVersion: undefined };
    };
  /** A user who is not a player, as a member. */
  const newMember: Recipe = async (player) => {
    const { rows } = await owner.query<{ id: string }>(
      `insert into app_public.organization_user_connections (organization_id, user_id, role)
       select $1, u.user_id, 'MEMBER' from app_hidden.user_identities u
       where u.email like 'fuzz.%' and not exists (select from app_public.organization_user_connections c where c.user_id = u.user_id and c.organization_id = $1)
       limit 1 returning user_id as id`,
      [homeOf(player)],
    );
    return { ...(await inHome(player)), userId: rows[0]?.id ?? mia.id };
  };
  /** A ticket as the service opens it. */
  const ticket: Recipe = async (player) => {
    const { rows } = await owner.query<{ id: string }>(
      `select app_private.open_ticket('OTHER', $2, $1, 'Something came up', '{APPROVE,DISMISS}') as id`,
      [homeOf(player), name()],
    );
    return { id: rows[0]!.id, expectedVersion: undefined };
  };
  /** A confirmed address, which sending to third parties requires. */
  const confirmed = async ({ person }: Player) => {
    if (person.id) await setConfirmed(owner, person.id, true);
  };
  const unconfirmed = async ({ person }: Player) => {
    if (person.id) await setConfirmed(owner, person.id, false);
  };
  const draft: Recipe = async (player) => {
    const { leadId } = await find(
      player,
      `select id as "leadId" from app_public.leads where ${ofHome} and deleted_at is null and email is not null and status not in ('LOST', 'CONVERTED')`,
    );
    return { leadId, instructions: undefined, language: "en", tone: undefined, purpose: undefined };
  };
  /** A deposit of the player's own purchase, of an organization with payments. */
  const payment: Recipe = async (player) => {
    const boss = bossOf(player);
    const organizationId = homeOf(player);
    await run(boss, "createOrganizationPaymentsRepresentative", { ...representative, organizationId });
    const { buyerId } = await find(
      player,
      `select b.id as "buyerId" from app_public.buyers b, home where b.${ofHome} and b.deleted_at is null and b.status <> 'CANCELLED'
       and (b.user_id = home.player or not exists (select from app_public.buyers o where o.user_id = home.player))`,
    );
    const deposit = await run(boss, "createDeposit", { buyerId, title: name(), amount: "100.00" });
    const card = await run(player.person, "createProcessorCard", { token: "tok_visa" });
    return {
      depositId: deposit.id,
      amount: "60.00",
      cardId: card.id,
      reservationId: undefined,
      organizationId: undefined,
      currency: undefined,
    };
  };
  /** A document of a purchase; the player's own purchase if there is one. */
  const buyerDocument: Recipe = async (player) => ({
    ...(await find(
      player,
      `select b.id as "buyerId" from app_public.buyers b, home where b.${ofHome} and b.deleted_at is null and b.status <> 'CANCELLED'
       and (b.user_id = home.player or not exists (select from app_public.buyers o where o.user_id = home.player))`,
    )),
    organizationId: undefined,
    category: "IDENTITY",
    file: `data:application/pdf;name=fuzz.pdf;base64,${Buffer.from("%PDF-1.7\n%%EOF\n").toString("base64")}`,
  });
  /** An agreement prepared by the owner, with a signer of that address; optionally sent. */
  const agreement = async (player: Player, signerEmail: string, status?: "SENT") => {
    const boss = bossOf(player);
    const { projectId } = await find(player, someProject);
    const { id: buyerId } = await run(boss, "createBuyer", {
      projectId,
      legalName: name(),
      price: "400000.00",
    });
    const { id } = await run(boss, "createAgreement", { buyerId, type: "PURCHASE", title: name() });
    const file = `data:application/pdf;name=fuzz.pdf;base64,${Buffer.from(`%PDF-1.7\n${name()}\n%%EOF\n`).toString("base64")}`;
    const version = await run(boss, "uploadAgreementFile", { agreementId: id, file });
    const signer = { agreementId: id, role: "BUYER", name: name(), email: signerEmail };
    const { id: signerId } = await run(boss, "createAgreementSigner", signer);
    if (status) await run(boss, "updateAgreement", { id, status });
    return { agreementId: id, fileId: version.id, signerId, file };
  };
  /** The player's own turn to sign; outsiders remain outside. */
  const turn = async (player: Player): Promise<Input> => {
    if (!player.person.email || player.name === "newcomer") return {};
    await confirmed(player);
    // All players have the same network.
    await owner.query("delete from app_private.limit_uses where key like 'signing.network %'");
    const { signerId } = await agreement(player, player.person.email, "SENT");
    return { signerId, token: undefined, channel: undefined };
  };
  /** The same, with a code that was sent. */
  const withCode =
    (more: Input): Recipe =>
    async (player) => {
      const { signerId } = await turn(player);
      await run(player.person, "requestSigningCode", { signerId }, "{ signerId }");
      await owner.query(
        `update app_private.agreement_codes set code_sha256 = app_private.hash_of_code(signer_id, '123456'), expires_at = now() + interval '10 minutes'
         where signer_id = $1`,
        [signerId],
      );
      return { signerId, token: undefined, fileId: undefined, code: "123456", ...more };
    };
  const ofDraft =
    (member: "agreementId" | "fileId" | "signerId", as: string, more: () => Input = () => ({})): Recipe =>
    async (player) => ({
      [as]: (await agreement(player, email()))[member],
      expectedVersion: undefined,
      ...more(),
    });
  const account: Recipe = () => ({
    email: email(),
    username: undefined,
    password,
    firstName: "Fuzz",
    phone: undefined,
    timeZone: undefined,
    locale: undefined,
  });

  /** A player with a random second factor would need its code. */
  const withoutFactor = async ({ person }: Player) => {
    if (person.id)
      await owner.query("delete from app_private.second_factors where user_id = $1", [person.id]);
  };
  const enroll = async (player: Player): Promise<string> => {
    await withoutFactor(player);
    await confirmed(player);
    const { data } = await player.person.ask(mutationOf("enrollSecondFactor", "{ secret }"), {
      input: { password },
    });
    return data?.enrollSecondFactor?.secret ?? "";
  };
  /** With the next code of an account that has just added its second factor. */
  const withFactor: Recipe = async (player) => {
    const ofApp = await enroll(player);
    const { person } = player;
    await person.ask(mutationOf("confirmSecondFactor", "{ codes }"), { input: { code: codeOf(ofApp) } });
    return { password, secondFactorCode: codeOf(ofApp, 1) };
  };
  /** Another organization, invited by an address. */
  const toProject: Recipe = async (player) => {
    await confirmed(bosses.get(homeOf(player)) ?? player);
    await confirmed(player);
    return {
      ...(await find(player, someProject)),
      organizationId: undefined,
      email: email(),
      role: "AGENCY",
      permissions: undefined,
    };
  };
  /** The token of an invitation to a project of the player's organization, sent to the player. */
  const invitedToProject = async (player: Player): Promise<Input> => {
    await run(bossOf(player), "createProjectOrganization", {
      ...(await toProject(player)),
      email: player.person.email,
    });
    return {
      id: undefined,
      ...(await secret(
        `insert into app_private.project_organization_invite_tokens (invite_id, token_hash)
         select i.id, $1 from app_public.project_organization_invites i join app_hidden.user_identities u on u.email = i.email and u.user_id = $2
         where i.status = 'PENDING' order by i.id desc limit 1
         on conflict (invite_id) do update set token_hash = excluded.token_hash`,
      )(player)),
    };
  };
  /** The affiliation of an organization whose owner is the same user. */
  const affiliated: Recipe = async (player) => {
    const { projectId } = await find(player, someProject);
    const { rows } = await owner.query<{ id: string }>(
      `with o as (insert into app_public.organizations (name) values ($2) returning id),
         m as (insert into app_public.organization_user_connections (organization_id, user_id, role) select id, $3, 'OWNER' from o)
       insert into app_public.project_organizations (project_id, owner_id, organization_id, role)
       select p.id, p.organization_id, o.id, 'AGENCY' from app_public.projects p, o where p.id = $1 returning id`,
      [projectId, name(), bossOf(player).id],
    );
    return { id: rows[0]?.id, handOver: undefined, assigneeId: undefined };
  };

  /** Jobs that do not exist: only the permission is tested. */
  const failedJobs: Recipe = (player) => ({ organizationId: homeOf(player), state: "FAILED" });
  /** Only an owner becomes an operator here, because operators see jobs of others. */
  const operated: Recipe = async (player) => {
    if (player === bosses.get(harbour.id))
      await owner.query("insert into app_private.operators (user_id) values ($1) on conflict do nothing", [
        player.person.id,
      ]);
    await owner.query(
      "insert into graphile_worker._private_tasks (identifier) values ('fuzz__nothing') on conflict do nothing",
    );
    return { task: "fuzz__nothing" };
  };

  return {
    discardJobs: failedJobs,
    rescheduleJobs: async (player) => ({
      ...(await failedJobs(player)),
      runAt: new Date(Date.now() + 86_400_000).toISOString(),
    }),
    resumeTask: operated,
    retryJobs: failedJobs,
    // Accepting makes the player a buyer, so others do not.
    acceptBuyerInvite: async (player) => {
      if (!["buyer", "newcomer"].includes(player.name)) return {};
      const boss = bossOf(player);
      const { projectId } = await find(player, someProject);
      const { id: buyerId } = await run(boss, "createBuyer", {
        projectId,
        legalName: name(),
        price: "400000.00",
      });
      await confirmed(bosses.get(homeOf(player))!);
      await run(boss, "inviteBuyer", { buyerId, email: player.person.email }, "");
      return secret(
        `insert into app_private.buyer_invite_tokens (invite_id, token_hash)
         select i.id, $1 from app_hidden.buyer_invites i join app_hidden.user_identities u on u.email = i.email and u.user_id = $2
         where i.status = 'PENDING' order by i.id desc limit 1
         on conflict (invite_id) do update set token_hash = excluded.token_hash`,
      )(player);
    },
    acceptContactMessage: found(
      `select id from app_public.project_contact_messages where merged_at is null and ${ofHome}`,
    ),
    acceptGeneration: afterBoss("suggestLeadEmail", draft),
    // The invitation is for the newcomer's address, so that outsiders remain outside.
    acceptOrganizationInvite: async (player) => {
      if (player.name !== "newcomer") return {};
      await run(bosses.get(harbour.id)!.person, "createOrganizationInvite", {
        organizationId: harbour.id,
        email: player.person.email,
        role: "MEMBER",
      });
      return secret(
        `insert into app_private.organization_invite_tokens (invite_id, token_hash)
         select i.id, $1 from app_public.organization_invites i join app_hidden.user_identities u on u.email = i.email and u.user_id = $2
         where i.status = 'PENDING' limit 1
         on conflict (invite_id) do update set token_hash = excluded.token_hash`,
      )(player);
    },
    // For a new organization founded for this purpose, so that nobody else becomes affiliated.
    acceptProjectOrganizationInvite: async (player) => {
      const { id: organizationId } = await run(player.person, "createOrganization", { name: name() });
      return { ...(await invitedToProject(player)), organizationId };
    },
    batchWorkflow: async (player) => ({
      ...(await find(
        player,
        `select w.id, jsonb_build_array(l.id) as "subjectIds", null as "leadsFilter" from app_public.workflows w join app_public.leads l using (organization_id)
         where w.subject_type = 'LEAD' and w.status = 'ENABLED' and l.deleted_at is null and w.${ofHome}`,
      )),
    }),
    cancelBuyer: async (player) => {
      const { projectId } = await find(player, someProject);
      const { id } = await run(bossOf(player), "createBuyer", {
        projectId,
        legalName: name(),
        price: "400000.00",
      });
      return {
        id,
        ...(await find(
          player,
          `select id as "falloutReasonId" from app_public.fallout_reasons
           where project_id = '${projectId}' and 'BUYER' = any (applies_to::text[]) and deleted_at is null`,
        )),
        refunds: undefined,
        returns: undefined,
        expectedVersion: undefined,
      };
    },
    cancelExport: async (player) => {
      const boss = bossOf(player);
      const { id } = await run(boss, "createCustomExport", {
        organizationId: homeOf(player),
        name: name(),
        subject: "LEADS",
        format: "CSV",
      });
      const running = await run(player.person, "runCustomExport", { id });
      return { id: running.id };
    },
    cancelWorkflowExecution: execution("RUNNING"),
    cancelWorkflowExecutions: found(
      `select w.id as "workflowId" from app_public.workflows w where w.${ofHome}`,
    ),
    // One of two addresses, so that players keep their own.
    confirmEmailChange: secret(
      `insert into app_private.email_changes (user_id, email, code_sha256) values ($2, 'fuzz.' || gen_random_uuid() || '@example.com', $1)
       on conflict (user_id) do update set code_sha256 = excluded.code_sha256, former_confirmed_at = null, expires_at = excluded.expires_at`,
    ),
    confirmSecondFactor: async (player) => ({ code: codeOf(await enroll(player)) }),
    convertLead: found(freeHome),
    createAccount: account,
    createAgreementSigner: ofDraft("agreementId", "agreementId", () => ({
      email: email(),
      phone: undefined,
    })),
    // A player whose account is erased could not continue.
    eraseAccount: async (player) => {
      await withoutFactor(player);
      const { userId } = await newMember(player);
      // The last owner of an organization may not leave it.
      await owner.query(
        `insert into app_public.organization_user_connections (organization_id, user_id, role)
         select m.organization_id, $2, 'OWNER' from app_public.organization_user_connections m where m.user_id = $1 and m.role = 'OWNER'
         on conflict (organization_id, user_id) do update set role = 'OWNER'`,
        [player.person.id, userId],
      );
      return { password, secondFactorCode: undefined, dryRun: true };
    },
    // A new organization without deals.
    requestOrganizationDeletion: async (player) => {
      await withoutFactor(player);
      const { id: organizationId } = await run(player.person, "createOrganization", { name: name() });
      return { organizationId, password, secondFactorCode: undefined, dryRun: true };
    },
    exportOrganization: inHome,
    cancelOrganizationDeletion: async (player) => {
      await owner.query(
        `insert into app_public.organization_deletions (organization_id, final_at) values ($1, now() + interval '30 days')
         on conflict do nothing`,
        [homeOf(player)],
      );
      return inHome(player);
    },
    // A new user, who is not a player.
    erasePerson: async (player) => {
      const { projectId } = await find(
        player,
        `select p.id as "projectId" from app_public.projects p, home
         where p.organization_id = home.id and p.archived_at is null and p.deleted_at is null`,
      );
      const { id: leadId } = await run(bossOf(player), "createLead", {
        projectId,
        name: name(),
        email: email(),
      });
      return { leadId, buyerId: undefined, agentId: undefined, dryRun: undefined };
    },
    exportCustomReport: async (player) => {
      const { id } = await run(bossOf(player), "createCustomReport", {
        organizationId: homeOf(player),
        name: name(),
        subject: "LEADS",
        groupBy: ["status"],
        visibility: "ORGANIZATION",
      });
      return { id };
    },
    createCustomExport: async (player) => ({
      ...(await inHome(player)),
      subject: "LEADS",
      columns: undefined,
      filter: undefined,
      sort: undefined,
      projectId: undefined,
    }),
    createLead: async (player) => ({
      ...(await find(player, someProject)),
      name: name(),
      email: email(),
      source: undefined,
      sourceId: undefined,
      trackerId: undefined,
    }),
    createNegotiation: found(freeHome),
    createOfferResponse: found(
      `select id as "offerId", null as "expectedVersion" from app_public.offers where status = 'PENDING' and ${ofHome}`,
    ),
    createOrganizationIntegration: async (player) => ({
      ...(await inHome(player)),
      appKey: "crm_sync",
      config: { url: receiver, events: ["lead.created"], mapping: { mail: "data.email" } },
      credentials: undefined,
      projectId: undefined,
    }),
    createOrganizationInvite: async (player) => {
      await confirmed(player);
      return { ...(await inHome(player)), email: email(), role: "MEMBER" };
    },
    createOrganizationPaymentsRepresentative: async (player) => ({
      ...representative,
      ...(await inHome(player)),
      // There is only one authorized signer.
      kind: "DIRECTOR",
      email: email(),
    }),
    createPaymentIntent: payment,
    createProcessorCard: () => ({ token: "tok_visa" }),
    createProcessorCharge: payment,
    createProjectOrganization: toProject,
    declineProjectOrganizationInvite: (player) => invitedToProject(player),
    deleteProjectOrganization: affiliated,
    createPromotion: async (player) => ({
      ...(await find(player, someProject)),
      percent: "5",
      amount: undefined,
      appliesTo: "PROJECT",
      unitIds: undefined,
      floorPlanIds: undefined,
      lotIds: undefined,
    }),
    createReservation: found(freeHome, { acceptedTerms: true, status: undefined, expiration: undefined }),
    createUnitHold: found(freeHome, { expiration: undefined }),
    createUserIntegration: feed,
    createUserOtp: ({ person }) => ({ email: person.email ?? email() }),
    createWebhook: async (player) => ({ ...(await inHome(player)), ...webhook() }),
    createWorkflow: async (player) => ({ ...(await inHome(player)), ...waiting() }),
    createWorkflowExecution: found(
      `select w.id as "workflowId", l.id as "subjectId", null as context from app_public.workflows w join app_public.leads l using (organization_id)
       where w.subject_type = 'LEAD' and w.status = 'ENABLED' and l.deleted_at is null and w.${ofHome}`,
    ),
    declineAgreement: withCode({ reason: "It is too expensive." }),
    deleteAgreementFile: ofDraft("fileId", "id"),
    deleteAgreementSigner: ofDraft("signerId", "id"),
    deleteCustomExport: after("createCustomExport", () => ({
      name: name(),
      subject: "LEADS",
      format: "CSV",
    })),
    deleteLeadSource: async (player) => {
      const { projectId } = await find(player, someProject);
      const code = name().replace(" ", "_").toUpperCase();
      const { id } = await run(player.person, "createLeadSource", { projectId, name: code, code });
      return { id, reassignToId: undefined, expectedVersion: undefined };
    },
    deleteOrganizationIntegration: found(integration(["ENABLED", "DISABLED", "PENDING", "ERROR"])),
    deleteProject: after("createProject", () => ({ title: name(), status: "SELLING", currency: "CAD" })),
    deleteBuyerDocument: after("uploadBuyerDocument", buyerDocument),
    deleteUnitHold: afterBoss("createUnitHold", found(freeHome)),
    deleteUserIntegration: found(ownIntegration(["ENABLED", "DISABLED", "PENDING", "ERROR"])),
    deleteWebhook: after("createWebhook", webhook),
    deleteWorkflow: after("createWorkflow", waiting),
    disableOrganizationIntegration: found(integration(["ENABLED"])),
    disableUserIntegration: found(ownIntegration(["ENABLED"])),
    disableWorkflow: found(
      `select id, null as "expectedVersion" from app_public.workflows where status = 'ENABLED' and ${ofHome}`,
    ),
    disableSecondFactor: withFactor,
    discardGeneration: afterBoss("suggestLeadEmail", draft),
    enableWorkflow: found(
      `select id, null as "expectedVersion" from app_public.workflows where status in ('DRAFT', 'DISABLED') and ${ofHome}`,
    ),
    importBuyers: async (player) => ({
      ...(await find(player, someProject)),
      file: csv(`legal_name,price\n${name()},400000\n`),
      dryRun: false,
    }),
    importLeads: async (player) => ({
      ...(await find(player, someProject)),
      file: csv(`name,email,tags\n${name()},${email()},fuzz; file\n`),
      system: "fuzz",
      dryRun: false,
    }),
    importUnits: async (player) => ({
      ...(await find(player, someProject)),
      file: csv(`unit_number\n${name()}\n`),
      dryRun: false,
    }),
    inviteBuyer: async (player) => {
      await confirmed(player);
      return {
        ...(await find(
          player,
          `select id as "buyerId", null as message from app_public.buyers where user_id is null and status <> 'CANCELLED' and deleted_at is null and ${ofHome}`,
        )),
        email: email(),
      };
    },
    enrollSecondFactor: async (player) => {
      await withoutFactor(player);
      await confirmed(player);
      return { password };
    },
    login: async (player) => {
      await withoutFactor(player);
      return { username: player.person.email ?? "nobody@example.com", password };
    },
    pauseTask: operated,
    pauseWorkflowExecution: execution("RUNNING"),
    redeliverEvents: async (player) => {
      const { id } = await run(bossOf(player), "createWebhook", {
        organizationId: homeOf(player),
        ...webhook(),
      });
      return { id, fromSequence: "1", toSequence: undefined };
    },
    refreshOrganizationIntegration: found(integration(["ENABLED", "ERROR"])),
    refreshSession: async (player) => {
      await withoutFactor(player);
      const { person } = player;
      const input = { username: person.email ?? "nobody@example.com", password, refreshable: true };
      const { data } = await person.ask(mutationOf("login", "{ refreshToken }"), { input });
      return { refreshToken: data?.login?.refreshToken ?? "none" };
    },
    refreshUserIntegration: found(ownIntegration(["ENABLED", "ERROR"])),
    refundProcessorCharge: async (player) => {
      const query = `select id as "chargeId", null as amount from app_public.processor_charges
        where status in ('SUCCEEDED', 'PARTIALLY_REFUNDED') and amount > amount_refunded + amount_refunding and ${ofHome}`;
      const there = await find(player, query);
      if (there.chargeId) return there;
      await work();
      return find(player, query);
    },
    remindAgreementSigner: async (player) => ({ id: (await agreement(player, email(), "SENT")).signerId }),
    // Not a player, who would become another kind of viewer.
    removeOrganizationMember: newMember,
    removeOrganizationPaymentsRepresentative: found(
      `select id, null as "expectedVersion" from app_public.organization_payments_representatives where ${ofHome}`,
    ),
    removeProcessorCard: after("createProcessorCard", () => ({
      organizationId: undefined,
      token: "tok_visa",
    })),
    renewRecoveryCodes: withFactor,
    requestEmailChange: async (player) => {
      await withoutFactor(player);
      return { email: email(), password };
    },
    requestEmailVerification: async (player) => {
      await unconfirmed(player);
      return {};
    },
    requestMailConsent: async (player) => {
      await confirmed(player);
      return { ...(await inHome(player)), email: email() };
    },
    requestSigningCode: turn,
    resendOrganizationInvite: found(
      `select id from app_public.organization_invites where status = 'PENDING' and ${ofHome}`,
    ),
    resendProjectOrganizationInvite: found(
      `select id from app_public.project_organization_invites where status = 'PENDING' and expires_at > now() and owner_id in (select id from home)`,
    ),
    resetMemberSecondFactor: async (player) => {
      await withoutFactor(player);
      const member = await newMember(player);
      await owner.query(
        `insert into app_private.second_factors (user_id, sealed, confirmed_at) values ($1, 'nobody has it', now())
         on conflict (user_id) do update set confirmed_at = now()`,
        [member.userId],
      );
      return { ...member, password };
    },
    resetPassword: async (player) => {
      await withoutFactor(player);
      return secret(
        `insert into app_private.user_otps (user_id, code_sha256, expires_at) values ($2, $1, now() + interval '10 minutes')
         on conflict (user_id) do update set code_sha256 = excluded.code_sha256, expires_at = excluded.expires_at`,
        { password },
      )(player);
    },
    resolveEscalationTicket: async (player) => ({
      ...(await ticket(player)),
      action: "DISMISS",
      assigneeId: undefined,
    }),
    resumeWorkflowExecution: execution("PAUSED"),
    revokeAccessToken: after("createAccessToken", () => ({ name: name(), organizationId: undefined })),
    revokeProjectOrganizationInvite: afterBoss("createProjectOrganization", toProject),
    revokeOrganizationInvite: found(
      `select id from app_public.organization_invites where status = 'PENDING' and ${ofHome}`,
    ),
    rotateWebhookSecret: found(`select id from app_public.webhooks where ${ofHome}`),
    runCustomExport: found(`select id from app_public.custom_exports where deleted_at is null and ${ofHome}`),
    signAgreement: withCode({ consent: true }),
    signingRequest: turn,
    sendTestWebhook: found(`select id from app_public.webhooks where ${ofHome}`),
    suggestLeadEmail: draft,
    updateAgreementFile: ofDraft("fileId", "id"),
    updateAgreementSigner: ofDraft("signerId", "id", () => ({ email: email(), phone: undefined })),
    updateEscalationTicket: ticket,
    updateBuyerDocument: after("uploadBuyerDocument", buyerDocument, { category: "OTHER" }),
    uploadAgreementFile: async (player) => {
      const { agreementId, file } = await agreement(player, email());
      return { agreementId, file, voidSignatures: undefined };
    },
    updateLeads: async (player) => ({
      ...(await find(
        player,
        `select jsonb_build_array(l.id) as ids, null as filter, null as "assigneeId", null as unassign, null as status,
           null as "falloutReasonId" from app_public.leads l where l.deleted_at is null and l.${ofHome}`,
      )),
      addTags: [name()],
      dryRun: false,
    }),
    upsertLeads: async (player) => ({
      ...(await find(player, someProject)),
      system: "fuzz",
      leads: [{ externalId: name(), name: name(), email: email() }],
    }),
    updateUnitHold: found(
      `select id, 2 as expiration, null as "leadId", null as "expectedVersion" from app_public.unit_holds where status = 'ACTIVE' and ${ofHome}`,
    ),
    updateUnits: found(
      `select jsonb_build_array(u.id) as ids, u.project_id as "projectId", null as filter, null as "expectedVersion"
       from app_public.units u where u.deleted_at is null and u.status = 'AVAILABLE' and u.${ofHome}`,
    ),
    updateProcessorCharge: found(
      `select id, null as "expectedVersion" from app_public.processor_charges where ${ofHome}`,
    ),
    updateProjectOrganization: async (player) => ({
      ...(await affiliated(player)),
      role: "BROKER",
      permissions: undefined,
      assigneeId: undefined,
      expectedVersion: undefined,
    }),
    updateOrganizationIntegration: found(integration(["ENABLED", "DISABLED", "PENDING", "ERROR"]), {
      config: undefined,
      credentials: undefined,
    }),
    // If required, it would lock out players.
    updateOrganizationSecondFactor: async (player) => ({
      ...(await inHome(player)),
      required: false,
      graceDays: 30,
    }),
    updateOrganizationMemberRole: async (player) => ({ ...(await newMember(player)), role: "MEMBER" }),
    uploadBuyerDocument: buyerDocument,
    updatePassword: async (player) => {
      await withoutFactor(player);
      return { currentPassword: password, newPassword: password };
    },
    verifyEmail: async (player) => {
      await unconfirmed(player);
      return secret(
        `insert into app_private.email_verifications (user_id, code_sha256, expires_at) values ($2, $1, now() + interval '10 minutes')
         on conflict (user_id) do update set code_sha256 = excluded.code_sha256, expires_at = excluded.expires_at`,
      )(player);
    },
    withdrawOffer: found(
      `select id, null as "expectedVersion" from app_public.offers where status = 'PENDING' and ${ofHome}`,
    ),
  };
}
