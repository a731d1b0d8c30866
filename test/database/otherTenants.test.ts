/**
 * A transaction of one organization that stays open after its work (a slow disk, a stopped process, a long import)
 * blocks no other organization: their transactions share no locks.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { until } from "../harness/until.ts";
import { picture } from "../harness/upload.ts";
import type { Person } from "../harness/api.ts";

let world: Portfolio;
/**
 * Both sides have a project, with units, floor plans and leads, and execute the same operations with the same
 * words.
 */
let sides: { held: Side; others: Side };

interface Side {
  person: Person;
  organizationId: string;
  projectId: string;
  leadId: string;
  unitIds: string[];
  /** The address of visitors of its project. */
  address: string;
}

beforeAll(async () => {
  world = await startPortfolio(undefined, { trustProxy: 1 });
  sides = {
    held: await side(world.owen, world.harbour.id, "8.8.4.4"),
    others: await side(world.olga, world.summit.id, "1.1.1.1"),
  };
  // The job runner knows the task from the start of the service.
  await world.owner.query("select graphile_worker.add_job('search__catch_up')");
  // Transactions with an event of an organization in app_private.held stop before they commit, holding all
  // locks.
  await world.owner.query(`
    create table app_private.held (organization_id uuid);
    create function app_private.tg_event_batches__hold() returns trigger
    language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
    begin
      while exists (select from app_private.held h where h.organization_id = new.stream_id) loop
        perform pg_sleep(0.01);
      end loop;
      return null;
    end $$;
    create constraint trigger _000_hold after insert on app_private.event_batches
      deferrable initially deferred for each row execute function app_private.tg_event_batches__hold()`);
});
afterAll(() => world.stop());

async function side(person: Person, organizationId: string, address: string): Promise<Side> {
  const create = createIn(person);
  const projectId = await create("createProject", {
    organizationId,
    title: "Twin Towers",
    status: "SELLING",
    currency: "CAD",
    visibility: "PUBLIC",
    leadAssignment: "ROUND_ROBIN",
    address: { locality: "Guelph", administrativeArea: "ON", country: "CA" },
  });
  const unit = (number: number) =>
    create("createUnit", {
      projectId,
      title: `Home ${number}`,
      number: `${number}`,
      status: "AVAILABLE",
      price: "1",
    });
  const unitIds = await Promise.all(Array.from({ length: 25 }, (_, n) => unit(n)));
  const { id: leadId } = await createLead(person, {
    projectId,
    name: "Gwendolyn Twinning",
    email: "gwen@example.com",
  });
  return { person, organizationId, projectId, leadId, unitIds, address };
}

let count = 0;
const importUnits = (person: Person, projectId: string, rows: number) => {
  const csv = `Unit #,Price\n${Array.from({ length: rows }, () => `Imported ${(count += 1)},100\n`).join("")}`;
  const file = `data:text/csv;base64,${Buffer.from(csv).toString("base64")}`;
  return person.get(mutationOf("importUnits", "{ createdCount }"), { input: { projectId, file } });
};

const many = "importUnits, of so many that their words are indexed later";

/** The operations of everybody; each can be repeated. */
const work: Record<string, (side: Side) => Promise<unknown>> = {
  createProject: ({ person, organizationId }) =>
    createIn(person)("createProject", {
      organizationId,
      title: `Brand new ${Math.floor(count / 50)}`,
      currency: "CAD",
      address: {
        locality: `Newtown ${Math.floor((count += 1) / 50)}`,
        administrativeArea: "ON",
        country: "CA",
      },
    }),
  createLead: ({ person, projectId }) =>
    createLead(person, { projectId, name: "Marmaduke Peppercorn", email: `lead${(count += 1)}@example.com` }),
  updateLead: ({ person, leadId }) =>
    person.get(mutationOf("updateLead"), { input: { id: leadId, name: `Gwendolyn ${(count += 1)}` } }),
  createLeadNote: ({ person, leadId }) => createIn(person)("createLeadNote", { leadId, text: "Called back" }),
  // From an address of its own, because attempts from one address are counted one after the other.
  contactProject: async ({ projectId, address }) => {
    const { errors } = await world.anonymous.ask(
      `mutation ($input: ContactProjectInput!) { contactProject(input: $input) { id } }`,
      { input: { projectId, name: "Vera Visitor", email: `visitor${(count += 1)}@example.com` } },
      { headers: { "x-forwarded-for": address } },
    );
    if (errors) throw new Error(JSON.stringify(errors));
  },
  createUnit: ({ person, projectId }) =>
    createIn(person)("createUnit", { projectId, title: "Penthouse", number: `P${(count += 1)}` }),
  updateUnit: ({ person, unitIds }) =>
    person.get(mutationOf("updateUnit"), { input: { id: unitIds[0], title: `Home ${(count += 1)}` } }),
  createReservation: ({ person, unitIds, leadId }) =>
    createIn(person)("createReservation", { leadId, unitId: unitIds.pop()!, acceptedTerms: true }),
  importUnits: ({ person, projectId }) => importUnits(person, projectId, 20),
  [many]: ({ person, projectId }) => importUnits(person, projectId, 1_100),
  // The same picture as the other side, because equal contents are stored once.
  uploadProjectImage: async ({ person, projectId }) =>
    createIn(person)("uploadProjectImage", {
      projectId,
      file: `data:image/png;base64,${(await picture()).toString("base64")}`,
    }),
  createWebhook: ({ person, organizationId }) =>
    createIn(person)("createWebhook", {
      organizationId,
      url: `https://93.184.215.14/${(count += 1)}`,
      events: ["lead.created"],
    }),
  updateOrganization: ({ person, organizationId }) =>
    person.get(mutationOf("updateOrganization"), {
      input: { id: organizationId, description: `${(count += 1)}` },
    }),
  signUp: () => world.signUp(`Sigrid ${(count += 1)}`),
};

test.each(Object.keys(work).filter((name) => name !== "signUp"))(
  "while a transaction of %s is open, others do whatever they do",
  async (name) => {
    const { held, others } = sides;
    await world.owner.query("insert into app_private.held values ($1)", [held.organizationId]);
    const open = work[name]!(held);
    open.catch(() => {});
    try {
      await until(
        async () =>
          (
            await world.owner.query(
              "select count(*)::int as open from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()",
            )
          ).rows[0].open,
        (n) => n === 1,
      );
      for (const [what, doing] of Object.entries(work).filter(([task]) => task !== many || name === many))
        await expect(doing(others).then(() => what)).resolves.toBe(what);
      for (const question of [
        "{ viewer { id } }",
        "{ leads { id name } }",
        `{ search(query: "Gwendolyn") { type } }`,
        `{ unitsConnection(projectId: "${others.projectId}") { totalCount } }`,
      ])
        await others.person.get(question);
    } finally {
      await world.owner.query("delete from app_private.held");
    }
    await open;
  },
  60_000,
);
