/**
 * Rows of every table with policies, in every position that decides about access: in a private or public project, in a
 * project whose leads are visible to all members or only to their assignee, assigned to various people, of a buyer,
 * deleted, and of another organization. They are generated from the catalog, so that new tables are included. Triggers,
 * foreign keys and checks do not apply when they are inserted; policies apply when they are read.
 */
import { randomUUID } from "node:crypto";
import type { Client } from "pg";
import { valueOf } from "./twoOrganizations.ts";

/** The viewers, by role. */
export interface Viewer {
  name: string;
  /** Null for a visitor without a token. */
  user: string | null;
  /** The restrictions of the access token, if any. */
  settings?: Record<string, string>;
}

export interface RowWorld {
  /** Members of Harbour, members of organizations affiliated with its project View, buyers, and unrelated people. */
  people: Viewer[];
  /** Access tokens of these people for one permission each, or for one organization. */
  tokens: Viewer[];
  /** Tables whose policies distinguish rows, each with the name of its rows. */
  tables: Map<string, Set<string>>;
}

interface Column {
  name: string;
  /** Whether not everybody who sees the row can read the column. */
  masked: boolean;
  type: string;
  notNull: boolean;
  required: boolean;
  generated: boolean;
  refersTo: string | null;
  /** The table of its values, if it is an enumeration. */
  values: string | null;
}

interface Table {
  name: string;
  columns: Column[];
}

/** Rows that belong together: one of each table, each referring to the others. */
export interface Bundle {
  name: string;
  project: string;
  assignee?: string;
  author?: string;
  buyer?: string;
  /** Its rows are deleted, and refer to existing rows of another bundle. */
  deletedFrom?: string;
  /** Whether each table has a row for each value that its policies distinguish. */
  varied?: boolean;
}

/** Members of organizations by their role; the organizations' parts in View by theirs. */
const members: Record<string, [organization: string, role: string]> = {
  owner: ["Harbour", "OWNER"],
  admin: ["Harbour", "ADMIN"],
  member: ["Harbour", "MEMBER"],
  "another member": ["Harbour", "MEMBER"],
  // The organization requires a second factor, and the time to set one up has expired.
  "owner without second factor": ["Harbour", "OWNER"],
  "member without second factor": ["Harbour", "MEMBER"],
  "seller without second factor": ["Sisters", "MEMBER"],
  seller: ["Sisters", "MEMBER"],
  "seller's admin": ["Sisters", "ADMIN"],
  builder: ["Brick", "MEMBER"],
  marketer: ["Media", "MEMBER"],
  // The last two roles have every permission, as a row each, which changing the permissions of a role requires.
  "role with all": ["Bank", "MEMBER"],
  "role with own": ["Title", "MEMBER"],
  outsider: ["Summit", "OWNER"],
  "outside member": ["Summit", "MEMBER"],
};
/** The last two have a reservation alone, and a purchase alone. */
const buyers = ["buyer", "other buyer", "reserving", "purchasing"];
const stranger = "stranger";
/** Whose address is not confirmed. */
const unconfirmed = "builder";
const addressOf = (name: string) => `${name.replaceAll(" ", ".")}@example.com`;
const parts: Record<string, string> = {
  Harbour: "OWNER",
  Sisters: "SELLER",
  Brick: "BUILDER",
  Media: "MARKETER",
  Bank: "LENDER",
  Title: "TITLE",
};
const projects: Record<string, { organization: string; [column: string]: string }> = {
  View: { organization: "Harbour", visibility: "PRIVATE" },
  Quiet: { organization: "Harbour", visibility: "PRIVATE", lead_assignment: "PRIVATE" },
  Park: { organization: "Harbour", visibility: "PUBLIC" },
  Hidden: { organization: "Harbour", visibility: "UNLISTED" },
  Old: { organization: "Harbour", visibility: "PUBLIC", archived_at: "2026-01-05T10:00:00Z" },
  Peak: { organization: "Summit", visibility: "PRIVATE" },
};
export const bundles: Bundle[] = [
  { name: "View/open", project: "View", varied: true },
  { name: "View/seller", project: "View", assignee: "seller", author: "seller" },
  { name: "View/own", project: "View", assignee: "role with own", author: "role with own" },
  { name: "View/member", project: "View", assignee: "member", author: "member" },
  {
    name: "View/buyer",
    project: "View",
    assignee: "admin",
    author: "buyer",
    buyer: "buyer",
    varied: true,
  },
  {
    name: "View/other buyer",
    project: "View",
    assignee: "seller",
    author: "other buyer",
    buyer: "other buyer",
    varied: true,
  },
  { name: "Quiet/member", project: "Quiet", assignee: "member", author: "member" },
  { name: "Quiet/another", project: "Quiet", assignee: "another member", author: "another member" },
  { name: "Park/open", project: "Park", varied: true },
  // Assigned to a person who has no role in the project and is a buyer there.
  { name: "Park/seller", project: "Park", assignee: "seller", author: "seller", buyer: "seller" },
  { name: "Hidden", project: "Hidden" },
  { name: "Old", project: "Old" },
  { name: "Peak", project: "Peak", assignee: "outsider", author: "outsider", varied: true },
  {
    name: "View/seller, deleted",
    project: "View",
    assignee: "seller",
    author: "seller",
    buyer: "buyer",
    deletedFrom: "View/seller",
  },
  {
    name: "View/buyer, deleted",
    project: "View",
    assignee: "admin",
    author: "buyer",
    buyer: "buyer",
    deletedFrom: "View/buyer",
  },
  { name: "Park/open, deleted", project: "Park", deletedFrom: "Park/open", varied: true },
];

const longAgo = "2026-01-05T10:00:00Z";

/** Columns with the person responsible for a record; other columns that refer to users contain its author. */
const ofAssignee = new Set(["assignee_id", "host_id", "agent_user_id"]);
/** Columns that refer to the account of the buyer. */
const ofBuyer = new Set(["app_public.buyers.user_id", "app_public.reservations.buyer_id"]);
/** The columns that distinguish the rows of a bundle. */
const telling = /^(public|published|active|visible_to_buyer|visibility|status|is_self_service)$/;
/** Defaults of a row: for example, not a draft, which non-members cannot see. */
const shown: Record<string, string> = {
  "app_public.agreements": "SENT",
  "app_public.agreement_signers": "INVITED",
  "app_public.floor_plans": "ACTIVE",
  "app_public.lots": "AVAILABLE",
  "app_public.units": "AVAILABLE",
};
/** Tables of deals; columns that refer to them can be omitted. */
const deals = new Set(["app_public.leads", "app_public.buyers", "app_public.reservations"]);
const sides: Record<string, string> = { lead_id: "app_public.leads", buyer_id: "app_public.buyers" };

const tablesQuery = `
  select c.oid::regclass::text as name, jsonb_agg(jsonb_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
    'notNull', a.attnotnull, 'required', a.attnotnull and not a.atthasdef and a.attidentity = '',
    'masked', coalesce(col_description(c.oid, a.attnum) ~ '(^|\\n)@masked\\y', false), 'generated', a.attgenerated <> '' or a.attidentity = 'a', 'values', to_regclass(format_type(a.atttypid, null) || '_values')::text,
    'refersTo', (select k.confrelid::regclass::text from pg_constraint k where k.contype = 'f' and k.conrelid = c.oid and k.conparentid = 0
        and k.conkey[1] = a.attnum and k.confrelid::regclass::text like 'app_public.%' limit 1)) order by a.attnum) as columns
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace::regnamespace::text in ('app_public', 'app_hidden')
    and exists (select from pg_policy p where p.polrelid = c.oid and p.polroles && array['plat_user', 'plat_anonymous']::regrole[]::oid[]
      and coalesce(pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)) <> 'true')
  group by c.oid order by 1`;

/** Fills a migrated database with the rows. */
export async function makeRows(client: Client): Promise<RowWorld> {
  const { rows: tables } = await client.query<Table>(tablesQuery);
  const known = new Map<string, string | null>();
  const ids = new Map<string, string>();
  const idOf = (kind: string, name: string) => {
    const key = `${kind} ${name}`;
    if (!ids.has(key)) ids.set(key, randomUUID());
    return ids.get(key)!;
  };
  const people = [...Object.keys(members), ...buyers, stranger];
  await client.query("begin; set local session_replication_role = replica");
  // The constraints of rows have their own tests.
  const { rows: rules } = await client.query<{ drop: string }>(
    `select format('alter table %s drop constraint %I cascade', conrelid::regclass, conname) as drop from pg_constraint
     where contype in ('c', 'u', 'x') and conrelid = any ($1::regclass[]) and conparentid = 0
     union all
     select format('alter table %s alter column %I drop not null', attrelid::regclass, attname) from pg_attribute
     where attnotnull and attnum > 0 and attrelid = any ($1::regclass[]) and attnum <> all (coalesce((select indkey::int[] from pg_index
       where indrelid = attrelid and indisprimary), '{}'))
     union all
     select format('drop index %s', i.indexrelid::regclass) from pg_index i where i.indisunique and i.indrelid = any ($1::regclass[])
       and not exists (select from pg_constraint k where k.conindid = i.indexrelid)`,
    [tables.map(({ name }) => name)],
  );
  for (const { drop } of rules) await client.query(drop);
  await client.query(`
    create schema rows;
    grant usage on schema rows to plat_user, plat_anonymous;
    create table rows.labels (relation regclass, key text, label text, copy jsonb, primary key (relation, key));
    insert into app_private.role_permissions (role, permission, reach, in_affiliated)
      select 'LENDER', permission, 'ALL', true from app_private.role_permissions group by permission on conflict do nothing;
    insert into app_private.role_permissions (role, permission, reach, in_affiliated)
      select 'TITLE', permission, 'OWN', true from app_private.role_permissions group by permission
      on conflict (role, permission, in_affiliated) do update set reach = 'OWN';`);

  /** The value of a required column. */
  const fillers = new Map<string, unknown>();
  async function fillerOf(type: string): Promise<unknown> {
    if (!fillers.has(type)) {
      const { rows } = await client.query<{ value: unknown }>(`select to_jsonb($1::text::${type}) as value`, [
        await valueOf(client, type, known),
      ]);
      fillers.set(type, rows[0]!.value);
    }
    return fillers.get(type);
  }

  const listed = new Map<string, unknown[]>();
  async function valuesOf(list: string): Promise<unknown[]> {
    if (!listed.has(list)) {
      const { rows } = await client.query<{ value: unknown }>(`select value from ${list} order by 1`);
      listed.set(
        list,
        rows.map(({ value }) => value),
      );
    }
    return listed.get(list)!;
  }

  // PERF: in one statement at the end.
  const made: { relation: string; label: string; given: Record<string, unknown> }[] = [];
  async function insert(table: Table, label: string, values: Record<string, unknown>): Promise<void> {
    const row: Record<string, unknown> = { ...values };
    for (const { name, type, required, masked, generated } of table.columns)
      if ((required || masked) && !generated && !(name in row)) row[name] = await fillerOf(type);
    const given = table.columns.filter(({ name, generated }) => !generated && row[name] !== undefined);
    made.push({
      relation: table.name,
      label,
      given: Object.fromEntries(given.map(({ name }) => [name, row[name]])),
    });
  }

  await client.query(keyFunctions);
  const shared = new Set<string>();
  const share = async (name: string, rows: Record<string, Record<string, unknown>>) => {
    shared.add(name);
    const table = tables.find((other) => other.name === name)!;
    const isGone = (label: string) => label.endsWith(" deleted") && { deleted_at: longAgo };
    for (const [label, values] of Object.entries(rows))
      await insert(table, label, { ...values, ...isGone(label) });
  };
  const each = <T>(
    list: Iterable<T>,
    labelOf: (item: T) => string,
    rowOf: (item: T) => Record<string, unknown>,
  ) => Object.fromEntries([...list].map((item) => [labelOf(item), rowOf(item)]));
  await share(
    "app_public.users",
    each(
      [...people, "account deleted"],
      (name) => name,
      (name) => ({
        id: idOf("user", name),
        first_name: name,
        email_verified_at: name === unconfirmed ? null : longAgo,
      }),
    ),
  );
  await share(
    "app_hidden.user_identities",
    each(
      people,
      (name) => name,
      (name) => ({ user_id: idOf("user", name), email: addressOf(name) }),
    ),
  );
  await share(
    "app_public.organizations",
    each(
      new Set([...Object.values(members).map(([organization]) => organization), "deleted"]),
      (name) => `organization ${name}`,
      (name) => ({
        id: idOf("organization", name),
        name,
        slug: name.toLowerCase(),
        has_public_project: ["Harbour", "deleted"].includes(name),
      }),
    ),
  );
  await share(
    "app_public.organization_user_connections",
    each(
      [
        ...Object.entries(members),
        ["owner", ["deleted", "OWNER"]] as const,
        ["account deleted", ["Harbour", "MEMBER"]] as const,
      ],
      ([name, [organization]]) => `${name} in ${organization}`,
      ([name, [organization, role]]) => ({
        id: idOf(
          "app_public.organization_user_connections",
          name === "owner" ? `${name} ${organization}` : name,
        ),
        organization_id: idOf("organization", organization),
        user_id: idOf("user", name),
        role,
        second_factor_due_at: name.endsWith("without second factor") ? longAgo : null,
      }),
    ),
  );
  await share(
    "app_public.projects",
    each(
      Object.entries({ ...projects, deleted: { organization: "Harbour", visibility: "PUBLIC" } }),
      ([name]) => `project ${name}`,
      ([name, { organization, ...values }]) => ({
        ...values,
        id: idOf("project", name),
        organization_id: idOf("organization", organization),
        title: name,
        slug: name.toLowerCase(),
      }),
    ),
  );
  await share(
    "app_public.project_organizations",
    each(
      [
        ...Object.entries(parts).map(([name, role]) => ["View", name, role] as const),
        ["Peak", "Summit", "OWNER"] as const,
      ],
      ([project, organization]) => `${organization} in ${project}`,
      ([project, organization, role]) => ({
        id: idOf("app_public.project_organizations", `${organization} in ${project}`),
        project_id: idOf("project", project),
        owner_id: idOf("organization", projects[project]!.organization),
        organization_id: idOf("organization", organization),
        role,
      }),
    ),
  );

  const subjects = new Map(
    (
      await client.query<{ table: string; subject: string }>(
        "select 'app_public.' || table_name as table, subject from app_hidden.record_types",
      )
    ).rows.map(({ table, subject }) => [subject, table]),
  );
  const hasDeleted = new Set(
    tables.filter(({ columns }) => columns.some(({ name }) => name === "deleted_at")).map(({ name }) => name),
  );
  for (const bundle of bundles) {
    const { name: label, project, assignee, buyer, deletedFrom, varied } = bundle;
    const author = bundle.author ?? (project === "Peak" ? "outsider" : "owner");
    const organization = projects[project]!.organization;
    for (const table of tables) {
      if (shared.has(table.name)) continue;
      const has = (column: string) => table.columns.some(({ name }) => name === column);
      if (deletedFrom && !has("deleted_at")) continue;
      const values: Record<string, unknown> = {};
      for (const { name, type, refersTo } of table.columns) {
        if (name === "organization_id" || name === "owner_id")
          values[name] = idOf("organization", organization);
        else if (name === "stream_id") values[name] = idOf("organization", organization);
        else if (name === "project_id") values[name] = idOf("project", project);
        else if (ofAssignee.has(name)) values[name] = assignee ? idOf("user", assignee) : null;
        else if (ofBuyer.has(`${table.name}.${name}`)) values[name] = buyer ? idOf("user", buyer) : null;
        else if (refersTo === "app_public.users") values[name] = idOf("user", author);
        else if (refersTo === table.name) continue;
        else if (refersTo) values[name] = idOf(refersTo, deletedFrom ?? label);
        else if (name === "subject_type" && type === "text") values[name] = "lead";
        else if (name === "subject_id") values[name] = idOf(subjects.get("lead")!, deletedFrom ?? label);
        else if (name === "id" && type === "uuid") values[name] = idOf(table.name, label);
        else if (name === "status" && shown[table.name]) values[name] = shown[table.name];
        else if (name === "deleted_at" && deletedFrom) values[name] = longAgo;
      }
      if (table.name === "app_public.agreement_signers") values.email = addressOf(author);
      // A hook of an integration is the integration's own.
      if (has("integration_id")) values.integration_id = null;
      await insert(table, label, values);
      const variant = async (also: string, change: Record<string, unknown>) => {
        const row: Record<string, unknown> = { ...values, ...change };
        if (values.id) row.id = change.id ?? randomUUID();
        await insert(table, `${label} ${also}`, row);
      };
      const distinguishing = table.columns.filter(({ name }) => telling.test(name));
      const variants: [also: string, change: Record<string, unknown>][] = [];
      for (const { name, type, values: list } of varied ? distinguishing : []) {
        const all = list ? await valuesOf(list) : type === "boolean" ? [true, false] : [];
        for (const value of all)
          variants.push([list ? String(value) : `${value ? "" : "not "}${name}`, { [name]: value }]);
      }
      for (const [also, change] of variants) await variant(also, change);
      if (deletedFrom) continue;
      const left = table.columns
        .filter(({ name, notNull, refersTo }) => sides[name] && sides[name] === refersTo && !notNull)
        .map(({ name }) => name);
      if (left.includes("lead_id") && table.name !== "app_public.buyers") {
        await variant("without lead", { lead_id: null });
        if (left.includes("buyer_id")) {
          await variant("without buyer", { buyer_id: null });
          await variant("of nobody", { lead_id: null, buyer_id: null });
          if (label === "View/buyer")
            for (const [also, change] of variants) {
              await variant(`${also} without lead`, { ...change, lead_id: null });
              await variant(`${also} without buyer`, { ...change, buyer_id: null });
            }
        }
      }
      // A deleted row is visible to nobody, also for rows that refer to it.
      for (const { name, refersTo } of label === "View/seller" ? table.columns : [])
        if (refersTo && refersTo !== table.name && !shared.has(refersTo) && hasDeleted.has(refersTo))
          for (const also of name === "buyer_id" && left.includes("lead_id") ? ["", " without lead"] : [""])
            await variant(`of deleted ${name}${also}`, {
              [name]: idOf(refersTo, "View/seller, deleted"),
              ...(also && { lead_id: null }),
            });
      // A row of one person in the deal of another.
      if (label === "View/own" && left.length > 0) {
        const another = Object.fromEntries(left.map((name) => [name, idOf(sides[name]!, "View/member")]));
        await variant("of another's deal", another);
        for (const name of left.length > 1 ? left : [])
          await variant(`of another's deal without ${name.replace("_id", "")}`, { ...another, [name]: null });
      }
      if (!varied) continue;
      const byStranger = Object.fromEntries(
        table.columns
          .filter(
            ({ name, refersTo }) => refersTo === "app_public.users" && values[name] === idOf("user", author),
          )
          .map(({ name }) => [name, idOf("user", stranger)]),
      );
      if (label === "View/buyer") {
        if (table.name === "app_public.reservations")
          await variant("of reserving", { buyer_id: idOf("user", "reserving") });
        if (table.name === "app_public.buyers")
          await variant("of purchasing", {
            id: idOf("purchase", "purchasing"),
            user_id: idOf("user", "purchasing"),
            reservation_id: null,
          });
        if (left.includes("lead_id") && left.includes("buyer_id"))
          await variant("of purchasing without lead", {
            buyer_id: idOf("purchase", "purchasing"),
            lead_id: null,
            ...(has("reservation_id") && { reservation_id: null }),
          });
        if (table.name === "app_public.agreement_files") await variant("sent", { sent_at: longAgo });
        if (table.name === "app_public.agreement_signers")
          for (const name of [stranger, unconfirmed])
            for (const status of ["INVITED", "WAITING"])
              await variant(`of ${name}, ${status}`, { email: addressOf(name), status });
        // Agreements with one signer each.
        const signed: Record<string, Record<string, unknown>> = {
          "a draft": { status: "DRAFT" },
          "signed later": {},
          "signed no more": {},
        };
        if (table.name === "app_public.agreements") {
          for (const [also, change] of Object.entries(signed))
            await variant(also, { ...change, id: idOf(table.name, also), lead_id: null, buyer_id: null });
          await variant("without signers", { id: idOf(table.name, "without signers") });
        }
        if (table.name === "app_public.agreement_files")
          await variant("without signers", {
            agreement_id: idOf("app_public.agreements", "without signers"),
          });
        if (table.name === "app_public.agreement_signers") {
          const of = (also: string) => ({
            email: addressOf(stranger),
            agreement_id: idOf("app_public.agreements", also),
          });
          await variant("of a draft", of("a draft"));
          await variant("who waits", { ...of("signed later"), status: "WAITING" });
          await variant("who is gone, deleted", { ...of("signed no more"), deleted_at: longAgo });
          await variant("of the buyer by another address", { email: "elsewhere@example.com", role: "BUYER" });
        }
        if (table.name === "app_public.appointments")
          await variant("of another host, deleted", {
            host_id: idOf("user", "outsider"),
            deleted_at: longAgo,
          });
      }
      // Rows that the team adds to a deal.
      if (label === "View/buyer" && Object.keys(byStranger).length > 0)
        await variant(
          "by the team",
          Object.fromEntries(Object.keys(byStranger).map((name) => [name, idOf("user", "owner")])),
        );
      // One of several columns is set.
      if (label === "View/buyer" && Object.keys(byStranger).length > 1)
        for (const name of Object.keys(byStranger))
          await variant(`with only ${name}`, { ...byStranger, [name]: values[name] });
      const ofDeal = table.columns
        .filter(({ refersTo }) => refersTo && deals.has(refersTo))
        .map(({ name }) => name);
      if (label === "View/buyer" && ofDeal.length > 1 && Object.keys(byStranger).length > 0)
        for (const name of ofDeal)
          await variant(`with only ${name}`, {
            ...byStranger,
            ...Object.fromEntries(ofDeal.map((other) => [other, other === name ? values[other] : null])),
          });
      if (has("integration_id")) await variant("of an integration", { integration_id: randomUUID() });
      for (const { name, refersTo } of table.columns)
        if (refersTo === table.name && values.id) await variant("below", { [name]: values.id });
      if (table.name === "app_public.events") {
        const member = idOf("app_public.organization_user_connections", "owner Harbour");
        await variant("of a member", { subject_type: "member", subject_id: member });
        const part = idOf("app_public.project_organizations", "Sisters in View");
        await variant("of an affiliation", { subject_type: "affiliation", subject_id: part });
        const user = { subject_type: "user", subject_id: idOf("user", author) };
        await variant("of a user", {
          ...user,
          organization_id: null,
          stream_id: user.subject_id,
          project_id: null,
        });
        await variant("of a user in the organization", user);
        await variant("of no project", { project_id: null });
      }
    }
  }
  await client.query(
    "select rows.add(r.relation::regclass, r.label, r.given) from jsonb_to_recordset($1) r (relation text, label text, given jsonb)",
    [JSON.stringify(made)],
  );
  await client.query("commit; analyze");
  const viewer = (name: string, settings?: Record<string, string>): Viewer => ({
    name,
    user: name === "visitor" ? null : idOf("user", name),
    ...(settings && { settings }),
  });
  const { rows: labelled } = await client.query<{ table: string; labels: string[] }>(
    "select relation::text as table, array_agg(label order by label) as labels from rows.labels group by 1",
  );
  const labels = new Map(labelled.map((row) => [row.table, row.labels]));
  const { rows: permissions } = await client.query<{ permission: string }>(
    "select permission from app_private.role_permissions group by 1 union select 'purchase.own' order by 1",
  );
  const token = (name: string, permission: string): Viewer => ({
    ...viewer(name, {
      scopes: permission,
      token_id: name === "owner" ? idOf("app_public.access_tokens", "View/open") : randomUUID(),
    }),
    name: `${name}'s token for ${permission}`,
  });
  const tokenFor = (name: string, organization: string): Viewer => ({
    ...viewer(name, { organization_id: idOf("organization", organization), token_id: randomUUID() }),
    name: `${name}'s token for ${organization}`,
  });
  return {
    people: [...people.map((name) => viewer(name)), viewer("visitor")],
    tokens: [
      ...permissions.map(({ permission }) => token("owner", permission)),
      // Two permissions are needed.
      ...["owner", "member"].flatMap((name) =>
        ["lead.read", "buyer.read"].map((permission) => token(name, `workflow.read,${permission}`)),
      ),
      ...["lead.read,lead.write", "lead.read,buyer.write"].map((both) => token("owner", both)),
      // Permissions that the role does not have.
      token("member", "org.billing"),
      ...["lead.read", "buyer.read", "sale.write"].map((permission) => token("role with own", permission)),
      ...["purchase.own", "sale.read"].map((permission) => token("buyer", permission)),
      ...["org.member", "lead.read"].map((permission) => token("owner without second factor", permission)),
      tokenFor("owner without second factor", "deleted"),
      tokenFor("owner", "Harbour"),
      tokenFor("owner", "deleted"),
      tokenFor("buyer", "Harbour"),
    ],
    tables: new Map(tables.map(({ name }) => [name, new Set(labels.get(name))])),
  };
}

const keyFunctions = `
-- What a row is told by: its key, or all that it refers to.
create function rows.key_columns(relation regclass) returns table (name text, i int) language sql stable security definer as $$
  select a.attname, a.attnum::int from pg_attribute a where a.attrelid = relation and a.attnum > 0 and a.attnum = any (coalesce(
    (select x.indkey::int[] from pg_index x where x.indrelid = relation and x.indisprimary),
    (select array_agg(r.attnum) from pg_attribute r where r.attrelid = relation and r.attname like '%\\_id')))
$$;
create function rows.key_of(relation regclass, row_in jsonb) returns text language sql stable as $$
  select string_agg(row_in ->> name, ' ' order by i) from rows.key_columns(relation)
$$;
create function rows.key_expression(relation regclass) returns text language sql stable security definer as $$
  select 'concat_ws('' '', ' || string_agg(quote_ident(name), ', ' order by i) || ')' from rows.key_columns(relation)
$$;
create function rows.add(relation regclass, label text, given jsonb) returns void language plpgsql volatile as $$
declare
  names text := (select string_agg(quote_ident(key), ', ') from jsonb_object_keys(given) key);
begin
  execute format('with made as (insert into %1$s (%2$s) overriding system value
      select %2$s from jsonb_populate_record(null::%1$s, $1) on conflict do nothing returning *)
    insert into rows.labels select $2, rows.key_of($2, to_jsonb(made)), $3, to_jsonb(made) from made', relation, names)
    using given, relation, label;
end $$;
`;
