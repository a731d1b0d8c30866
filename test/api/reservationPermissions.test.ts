/**
 * Permissions for reservations and their documents. The table is the specification, in the words of
 * inventoryMatrix.test.ts: yes, a number of records, null, none, hidden, or the code of a refusal.
 *
 * owner, admin and member are of Harbour Homes, whose project Harbour View is open and whose Quiet Quay is in the lead mode
 * PRIVATE; the seller and the builder are members of organizations affiliated with Harbour View; the buyer and the other
 * buyer each have a purchase there; the outsider owns Summit Sales. Public Park is a public project of Harbour Homes.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { ask, readById, mutation, type Operation, outcomes, readMatrix } from "../harness/matrix.ts";
import { cast, type Portfolio, startPortfolio } from "../harness/portfolio.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { programOf } from "../harness/world.ts";

const matrix = `
                                        | owner     | admin     | member    | seller    | builder   | buyer     | other     | outsider  | anonymous
reservation, unassigned                 | yes       | yes       | yes       | null      | null      | null      | null      | null      | UNAUTH
reservation of the seller               | yes       | yes       | yes       | yes       | null      | null      | null      | null      | UNAUTH
reservation of the member, private      | yes       | yes       | yes       | null      | null      | null      | null      | null      | UNAUTH
reservation of another member, private  | yes       | yes       | null      | null      | null      | null      | null      | null      | UNAUTH
reservation of the buyer                | yes       | yes       | yes       | null      | null      | yes       | null      | null      | UNAUTH
reservations                            | 5         | 5         | 4         | 1         | none      | 1         | none      | none      | UNAUTH
reservations, of the project            | 3         | 3         | 3         | 1         | none      | 1         | none      | none      | UNAUTH
reservations, of the private project    | 2         | 2         | 1         | none      | none      | none      | none      | none      | UNAUTH
reservations, in another order          | 5         | 5         | 4         | 1         | none      | 1         | none      | none      | UNAUTH
reservationsConnection                  | 5         | 5         | 4         | 1         | none      | 1         | none      | none      | UNAUTH
project.reservations                    | 3         | 3         | 3         | 1         | null      | null      | null      | hidden    | hidden
unit.reservations, of the seller        | 1         | 1         | 1         | 1         | null      | hidden    | hidden    | hidden    | hidden
unit.reservations, in a public project  | none      | none      | none      | null      | null      | null      | null      | null      | null
unit.activeReservation, of the seller   | yes       | yes       | yes       | yes       | null      | hidden    | hidden    | hidden    | hidden
unit.activeReservation, unassigned      | yes       | yes       | yes       | null      | null      | hidden    | hidden    | hidden    | hidden
lot.reservations                        | none      | none      | none      | none      | null      | hidden    | hidden    | hidden    | hidden
lead.reservations                       | 1         | 1         | 1         | 1         | hidden    | hidden    | hidden    | hidden    | UNAUTH
viewer.reservations                     | none      | none      | none      | none      | none      | 1         | none      | none      | hidden
notes, of the buyer's                   | yes       | yes       | yes       | hidden    | hidden    | null      | hidden    | hidden    | UNAUTH
metadata, of the buyer's                | yes       | yes       | yes       | hidden    | hidden    | null      | hidden    | hidden    | UNAUTH
price, of the buyer's                   | yes       | yes       | yes       | hidden    | hidden    | yes       | hidden    | hidden    | UNAUTH
events, of the buyer's                  | yes       | yes       | yes       | hidden    | hidden    | none      | hidden    | hidden    | UNAUTH
event of the buyer's by id              | yes       | yes       | yes       | null      | null      | null      | null      | null      | UNAUTH
createReservation, unassigned lead      | yes       | yes       | yes       | NOT_FOUND | FORBIDDEN | FORBIDDEN | FORBIDDEN | NOT_FOUND | UNAUTH
createReservation, the seller's lead    | yes       | yes       | yes       | yes       | FORBIDDEN | FORBIDDEN | FORBIDDEN | NOT_FOUND | UNAUTH
createReservation, without a lead       | yes       | yes       | yes       | yes       | FORBIDDEN | yes       | yes       | NOT_FOUND | UNAUTH
createReservation, of a claimed unit    | UNAVAIL   | UNAVAIL   | UNAVAIL   | UNAVAIL   | FORBIDDEN | UNAVAIL   | UNAVAIL   | NOT_FOUND | UNAUTH
createReservation, private, own lead    | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
createReservation, private, others'     | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
createReservation, public project       | yes       | yes       | yes       | FORBIDDEN | FORBIDDEN | FORBIDDEN | FORBIDDEN | FORBIDDEN | UNAUTH
updateReservation, unassigned           | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
updateReservation of the seller         | yes       | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
updateReservation, private, own         | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
updateReservation, private, others'     | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
updateReservation of the buyer          | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | FORBIDDEN | NOT_FOUND | NOT_FOUND | UNAUTH
confirm the buyer's                     | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | FORBIDDEN | NOT_FOUND | NOT_FOUND | UNAUTH
extend the buyer's                      | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | FORBIDDEN | NOT_FOUND | NOT_FOUND | UNAUTH
refund the buyer's                      | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | FORBIDDEN | NOT_FOUND | NOT_FOUND | UNAUTH
cancel the buyer's                      | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | yes       | NOT_FOUND | NOT_FOUND | UNAUTH
uploadReservationDocument, unassigned   | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
uploadReservationDocument of the seller | yes       | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
uploadReservationDocument of the buyer  | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | FORBIDDEN | NOT_FOUND | NOT_FOUND | UNAUTH
reservationDocument of the seller       | yes       | yes       | yes       | yes       | hidden    | hidden    | hidden    | hidden    | UNAUTH
reservationDocument of the buyer        | yes       | yes       | yes       | hidden    | hidden    | hidden    | hidden    | hidden    | UNAUTH
reservationDocument for the buyer       | yes       | yes       | yes       | hidden    | hidden    | yes       | hidden    | hidden    | UNAUTH
documents of the buyer's                | 2         | 2         | 2         | hidden    | hidden    | 1         | hidden    | hidden    | UNAUTH
updateReservationDocument of the seller | yes       | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
updateReservationDocument for the buyer | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | FORBIDDEN | NOT_FOUND | NOT_FOUND | UNAUTH
deleteReservationDocument of the seller | yes       | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
deleteReservationDocument for the buyer | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | FORBIDDEN | NOT_FOUND | NOT_FOUND | UNAUTH
`;

const { rows } = readMatrix(matrix);
const codes: Record<string, string> = { UNAUTHENTICATED: "UNAUTH", INVENTORY_UNAVAILABLE: "UNAVAIL" };

let world: Portfolio;
let people: Record<string, Person>;
let operations: Record<string, Operation>;

beforeAll(async () => {
  world = await startPortfolio();
  const { owen, max, mia, sam, project, quiet, park, leads } = world;
  const [bea, ben] = (await Promise.all(["Bea Buyer", "Ben Buyer"].map(world.signUp))) as [Person, Person];
  people = cast(world, { buyer: bea, other: ben });
  const create = createIn(owen);
  for (const buyer of [bea, ben])
    await world.owner.query(
      `insert into app_public.buyers (project_id, organization_id, user_id, first_name, price) values ($1, $2, $3, 'Buyer', 1)`,
      [project.id, world.harbour.id, buyer.id],
    );
  const unit = (projectId = project.id) =>
    create("createUnit", { projectId, title: "Home", status: "AVAILABLE", price: 300_000 });
  const terms = { acceptedTerms: true };
  const reserve = async (person: Person, input: Record<string, unknown> = {}, projectId = project.id) =>
    create("createReservation", { unitId: await unit(projectId), ...terms, ...input }, person);
  const kept = {
    open: await reserve(owen, { leadId: leads.open.id }),
    sams: await reserve(sam, { leadId: leads.sams.id }),
    maxs: await reserve(max, { leadId: leads.maxs.id }, quiet.id),
    mias: await reserve(mia, { leadId: leads.mias.id }, quiet.id),
    beas: await reserve(bea),
  };
  const unitOf = async (id: string): Promise<string> =>
    (await world.owner.query("select unit_id from app_public.reservations where id = $1", [id])).rows[0]
      .unit_id;
  await mutation("updateReservation", () => ({ id: kept.beas, notes: "haggles", metadata: { a: 1 } }))(owen);
  const file = `data:text/plain;name=terms.txt;base64,${Buffer.from("The terms.").toString("base64")}`;
  const upload = (reservationId: string, input = {}) =>
    create("uploadReservationDocument", { reservationId, file, ...input });
  const documents = {
    sams: await upload(kept.sams),
    hidden: await upload(kept.beas),
    shown: await upload(kept.beas, { visibleToBuyer: true }),
  };
  const open = await unit(park.id);
  const claimed = await unitOf(kept.open);
  const lot = await create("createLot", { projectId: project.id, number: "L1" });
  await owen.get(
    `mutation ($id: ID!) { updateProject(input: { id: $id, visibility: PUBLIC }) { id } }`,
    park,
  );
  const {
    rows: [event],
  } = await world.owner.query("select id from app_public.events where subject_id = $1 limit 1", [kept.beas]);

  // Ends a reservation, so that the next person can make one.
  const over = async (id: string) =>
    world.owner.query("select app_private.end_reservation($1, 'CANCELLED', 'tidy')", [id]);
  const made =
    (field: string, input: () => Promise<Record<string, unknown>>): Operation =>
    async (person) => {
      const answer = await person.ask(mutationOf(field), { input: { ...terms, ...(await input()) } });
      if (answer.data?.[field]) await over(answer.data[field].id);
      return answer;
    };
  let serial = 0;
  const noted = (id: string) => mutation("updateReservation", () => ({ id, notes: `n ${++serial}` }));
  /** Changes a new reservation that the buyer has made. */
  const anew =
    (input: Record<string, unknown>): Operation =>
    async (person) => {
      const id = await reserve(bea);
      const answer = await mutation("updateReservation", () => ({ id, ...input }))(person);
      await over(id);
      return answer;
    };
  const reads = "{ id }";
  operations = {
    "reservation, unassigned": readById("reservation", kept.open),
    "reservation of the seller": readById("reservation", kept.sams),
    "reservation of the member, private": readById("reservation", kept.maxs),
    "reservation of another member, private": readById("reservation", kept.mias),
    "reservation of the buyer": readById("reservation", kept.beas),
    reservations: ask(`{ reservations ${reads} }`),
    "reservations, of the project": ask(
      `query ($id: ID!) { reservations(filter: { projectIds: [$id] }) ${reads} }`,
      project,
    ),
    "reservations, of the private project": ask(
      `query ($id: ID!) { reservations(filter: { projectIds: [$id] }) ${reads} }`,
      quiet,
    ),
    "reservations, in another order": ask(`{ reservations(orderBy: [ID_ASC]) ${reads} }`),
    reservationsConnection: ask(`{ reservationsConnection { totalCount nodes { id } } }`),
    "project.reservations": readById("project", project.id, `reservations ${reads}`),
    "unit.reservations, of the seller": readById("unit", await unitOf(kept.sams), `reservations ${reads}`),
    "unit.reservations, in a public project": readById("unit", open, `reservations ${reads}`),
    "unit.activeReservation, of the seller": readById(
      "unit",
      await unitOf(kept.sams),
      `activeReservation ${reads}`,
    ),
    "unit.activeReservation, unassigned": readById(
      "unit",
      await unitOf(kept.open),
      `activeReservation ${reads}`,
    ),
    "lot.reservations": readById("lot", lot, `reservations ${reads}`),
    "lead.reservations": readById("lead", leads.sams.id, `reservations ${reads}`),
    "viewer.reservations": async (person) => {
      const answer = await person.ask(`{ viewer { reservations { id } } }`);
      return { ...answer, data: { value: answer.data.viewer?.reservations ?? "hidden" } };
    },
    "notes, of the buyer's": readById("reservation", kept.beas, "notes"),
    "metadata, of the buyer's": readById("reservation", kept.beas, "metadata"),
    "price, of the buyer's": readById("reservation", kept.beas, "price"),
    "events, of the buyer's": async (person) => {
      const answer = await readById("reservation", kept.beas, "events { name }")(person);
      const { value } = answer.data;
      return { ...answer, data: { value: Array.isArray(value) && value.length ? "yes" : value } };
    },
    "event of the buyer's by id": readById("event", event.id),
    "createReservation, unassigned lead": made("createReservation", async () => ({
      unitId: await unit(),
      leadId: leads.open.id,
    })),
    "createReservation, the seller's lead": made("createReservation", async () => ({
      unitId: await unit(),
      leadId: leads.sams.id,
    })),
    "createReservation, without a lead": made("createReservation", async () => ({ unitId: await unit() })),
    "createReservation, of a claimed unit": made("createReservation", async () => ({ unitId: claimed })),
    "createReservation, private, own lead": made("createReservation", async () => ({
      unitId: await unit(quiet.id),
      leadId: leads.maxs.id,
    })),
    "createReservation, private, others'": made("createReservation", async () => ({
      unitId: await unit(quiet.id),
      leadId: leads.mias.id,
    })),
    "createReservation, public project": made("createReservation", async () => ({
      unitId: await unit(park.id),
    })),
    "updateReservation, unassigned": noted(kept.open),
    "updateReservation of the seller": noted(kept.sams),
    "updateReservation, private, own": noted(kept.maxs),
    "updateReservation, private, others'": noted(kept.mias),
    "updateReservation of the buyer": noted(kept.beas),
    "confirm the buyer's": anew({ status: "CONFIRMED" }),
    "extend the buyer's": anew({ expiration: 500 }),
    "refund the buyer's": anew({ status: "REFUNDED" }),
    "cancel the buyer's": anew({ status: "CANCELLED", cancellationReason: "changed minds" }),
    "uploadReservationDocument, unassigned": mutation("uploadReservationDocument", () => ({
      reservationId: kept.open,
      file,
    })),
    "uploadReservationDocument of the seller": mutation("uploadReservationDocument", () => ({
      reservationId: kept.sams,
      file,
    })),
    "uploadReservationDocument of the buyer": async (person) => {
      const reservationId = await reserve(bea);
      const answer = await mutation("uploadReservationDocument", () => ({ reservationId, file }))(person);
      await over(reservationId);
      return answer;
    },
    "reservationDocument of the seller": readById("reservationDocument", documents.sams, "url"),
    "reservationDocument of the buyer": readById("reservationDocument", documents.hidden, "url"),
    "reservationDocument for the buyer": readById("reservationDocument", documents.shown, "url"),
    "documents of the buyer's": readById("reservation", kept.beas, "documents { id url }"),
    "updateReservationDocument of the seller": mutation("updateReservationDocument", () => ({
      id: documents.sams,
      title: `T ${++serial}`,
    })),
    "updateReservationDocument for the buyer": mutation("updateReservationDocument", () => ({
      id: documents.shown,
      title: `T ${++serial}`,
    })),
    "deleteReservationDocument of the seller": mutation("deleteReservationDocument", async () => ({
      id: await upload(kept.sams),
    })),
    "deleteReservationDocument for the buyer": async (person) => {
      const id = await upload(kept.beas, { visibleToBuyer: true });
      const answer = await mutation("deleteReservationDocument", () => ({ id }))(person);
      if (answer.errors) await mutation("deleteReservationDocument", () => ({ id }))(owen);
      return answer;
    },
  };
});
afterAll(() => world.stop());

test.each(rows)("$operation", async ({ operation, expected }) => {
  expect(await outcomes(people, operations[operation]!, codes)).toEqual(expected);
});

test("the table contains every operation", () => {
  expect(Object.keys(operations).sort()).toEqual(rows.map((row) => row.operation).sort());
});

test("a token reserves and reads within its scopes", async () => {
  const token = (scopes: string[]) => programOf(world, world.owen, { scopes });
  const reader = await token(["sale.read", "inventory.read", "project.read"]);
  expect((await reader.get(`{ reservations { id } }`)).reservations.length).toBeGreaterThan(0);
  const unitId = await createIn(world.owen)("createUnit", {
    projectId: world.project.id,
    title: "Home",
    status: "AVAILABLE",
    price: 1,
  });
  expect(
    await reader.refused(mutationOf("createReservation"), { input: { unitId, acceptedTerms: true } }),
  ).toMatchObject({ code: "FORBIDDEN", permission: "sale.write" });
  const leads = await token(["lead.*"]);
  expect((await leads.get(`{ reservations { id } }`)).reservations).toEqual([]);
});
