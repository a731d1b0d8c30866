/**
 * Who may do what with floor plans, lots and units, of a public project and of a private one. The table is the
 * specification:
 *
 *   yes            the operation goes through, or the value is shown
 *   3              that many records are listed
 *   null · none    null without an error · an empty list
 *   hidden         not even the record around it is seen
 *   a code         refused with it: FORBID is FORBIDDEN, UNAUTH is UNAUTHENTICATED
 *
 * owner, admin and member are of Harbour Homes; the seller and the builder are members of organizations affiliated with its
 * project Harbour View, which is public here; the outsider owns Summit Sales.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Answer, Person } from "../harness/api.ts";
import { startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn } from "../harness/records.ts";

const matrix = `
                                         | owner | admin | member | seller    | builder   | outsider  | anonymous
unit, available                          | yes   | yes   | yes    | yes       | yes       | yes       | yes
unit, reserved                           | yes   | yes   | yes    | yes       | yes       | yes       | yes
unit, unreleased                         | yes   | yes   | yes    | yes       | yes       | null      | null
unit, available, of a private project    | yes   | yes   | yes    | null      | null      | null      | null
lot, available                           | yes   | yes   | yes    | yes       | yes       | yes       | yes
lot, unreleased                          | yes   | yes   | yes    | yes       | yes       | null      | null
floorPlan, active                        | yes   | yes   | yes    | yes       | yes       | yes       | yes
floorPlan, draft                         | yes   | yes   | yes    | yes       | yes       | null      | null
project.units                            | 3     | 3     | 3      | 3         | 3         | 2         | 2
project.lots                             | 2     | 2     | 2      | 2         | 2         | 1         | 1
project.floorPlans                       | 2     | 2     | 2      | 2         | 2         | 1         | 1
project.abstract                         | 3     | 3     | 3      | 3         | 2         | 2         | 2
units                                    | 4     | 4     | 4      | 3         | 3         | none      | none
unitsConnection                          | 4     | 4     | 4      | 3         | 3         | none      | none
unitsConnection of the project           | 3     | 3     | 3      | 3         | 3         | 2         | 2
unitsConnection by price of reserved     | 1     | 1     | 1      | 1         | none      | none      | none
unitsConnection by exact delivery        | 1     | 1     | 1      | 1         | 1         | none      | none
recentlySoldUnits                        | 1     | 1     | 1      | 1         | 1         | 1         | 1
price, available                         | yes   | yes   | yes    | yes       | yes       | yes       | yes
price, reserved                          | yes   | yes   | yes    | yes       | null      | null      | null
ppsf, reserved                           | yes   | yes   | yes    | yes       | null      | null      | null
originalListPrice                        | yes   | yes   | yes    | yes       | null      | null      | null
soldPrice                                | yes   | yes   | yes    | yes       | null      | null      | null
priceHistory                             | 1     | 1     | 1      | 1         | null      | null      | null
events                                   | 1     | 1     | null   | null      | null      | null      | null
metadata of a unit                       | yes   | yes   | yes    | yes       | null      | null      | null
metadata of a lot                        | yes   | yes   | yes    | yes       | null      | null      | null
metadata of a floor plan                 | yes   | yes   | yes    | yes       | null      | null      | null
price of a lot, available                | yes   | yes   | yes    | yes       | yes       | yes       | yes
price of a lot, unreleased               | yes   | yes   | yes    | yes       | null      | hidden    | hidden
exact delivery                           | yes   | yes   | yes    | yes       | yes       | no        | no
events, of a unit                        | 1     | 1     | 1      | none      | none      | none      | none
event of a unit by id                    | yes   | yes   | yes    | yes       | null      | null      | null
createUnit                               | yes   | yes   | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
createUnit, private project              | yes   | yes   | FORBID | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
createLot                                | yes   | yes   | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
createFloorPlan                          | yes   | yes   | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
updateUnit title                         | yes   | yes   | yes    | FORBID    | FORBID    | FORBID    | UNAUTH
updateUnit view                          | yes   | yes   | yes    | FORBID    | FORBID    | FORBID    | UNAUTH
updateUnit price                         | yes   | yes   | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
updateUnit bedrooms                      | yes   | yes   | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
updateUnit constructionStatus            | yes   | yes   | FORBID | FORBID    | yes       | FORBID    | UNAUTH
updateUnit estimatedDeliveryDate         | yes   | yes   | FORBID | FORBID    | yes       | FORBID    | UNAUTH
updateUnit title, unreleased             | yes   | yes   | yes    | FORBID    | FORBID    | NOT_FOUND | UNAUTH
updateUnit title, private project        | yes   | yes   | yes    | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
updateLot                                | yes   | yes   | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
updateFloorPlan                          | yes   | yes   | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
updateUnits price                        | yes   | yes   | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
updateUnits constructionStatus           | yes   | yes   | FORBID | FORBID    | yes       | FORBID    | UNAUTH
updateUnits, private project             | yes   | yes   | FORBID | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
deleteUnit                               | yes   | yes   | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
deleteLot                                | yes   | yes   | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
deleteFloorPlan                          | yes   | yes   | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
`;

const [header, ...lines] = matrix.trim().split("\n");
const cells = (line: string) => line.split("|").map((cell) => cell.trim());
const names = cells(header!).filter(Boolean);
const rows = lines.map((line) => ({ operation: cells(line)[0]!, expected: cells(line).slice(1) }));
const codes: Record<string, string> = { FORBIDDEN: "FORBID", UNAUTHENTICATED: "UNAUTH" };

function outcome(answer: Answer): string {
  const code = answer.errors?.[0]?.extensions.code;
  if (code) return codes[code] ?? code;
  const [value] = Object.values(answer.data) as any[];
  if (value === null || typeof value === "string" || typeof value === "number") return String(value);
  const list = value.nodes ?? value;
  if (!Array.isArray(list)) return "yes";
  if (value.nodes && value.totalCount !== list.length) return `${value.totalCount} counted`;
  return String(list.length || "none");
}

type Operation = (person: Person) => Promise<Answer>;
let world: Portfolio;
let people: Record<string, Person>;
let operations: Record<string, Operation>;

/** A look-up by id, of one member where `member` is given. */
const look =
  (field: string, id: string, member?: string): Operation =>
  async (person) => {
    const selection = member ? `{ value: ${member} }` : "{ id }";
    const answer = await person.ask(`query ($id: ID!) { ${field}(id: $id) ${selection} }`, { id });
    if (!member || !answer.data) return answer;
    const record = answer.data[field];
    const value = record?.value;
    const shown = value === null || Array.isArray(value) ? value : "yes";
    return { ...answer, data: { value: record ? shown : "hidden" } };
  };
const ask =
  (query: string, variables: Record<string, unknown> = {}): Operation =>
  (person) =>
    person.ask(query, variables);
const mutation =
  (field: string, input: () => Record<string, unknown> | Promise<Record<string, unknown>>): Operation =>
  async (person) => {
    const type = `${field[0]!.toUpperCase()}${field.slice(1)}Input`;
    const answer = await person.ask(
      `mutation ($input: ${type}!) { ${field}(input: $input) { __typename } }`,
      {
        input: await input(),
      },
    );
    return { ...answer, data: answer.data && { value: "yes" } };
  };

beforeAll(async () => {
  world = await startPortfolio();
  const { owen, ada, max, sam, bob, olga, anonymous, project, quiet } = world;
  people = { owner: owen, admin: ada, member: max, seller: sam, builder: bob, outsider: olga, anonymous };
  const create = createIn(owen);
  await owen.get(
    `mutation ($id: ID!) { updateProject(input: { id: $id, visibility: PUBLIC }) { id } }`,
    project,
  );
  let serial = 0;
  const plan = (input: Record<string, unknown> = {}) =>
    create("createFloorPlan", {
      projectId: project.id,
      title: `Plan ${++serial}`,
      metadata: { a: 1 },
      ...input,
    });
  const lot = (input: Record<string, unknown> = {}) =>
    create("createLot", { projectId: project.id, number: `L${++serial}`, metadata: { a: 1 }, ...input });
  const unit = (input: Record<string, unknown> = {}) =>
    create("createUnit", {
      projectId: project.id,
      title: `Unit ${++serial}`,
      metadata: { a: 1 },
      sqft: 1000,
      ...input,
    });
  const plans = { active: await plan({ status: "ACTIVE" }), draft: await plan() };
  const lots = {
    available: await lot({ status: "AVAILABLE", price: 1000 }),
    unreleased: await lot({ price: 1 }),
  };
  const units = {
    available: await unit({
      status: "AVAILABLE",
      price: 300_000,
      estimatedDeliveryDate: "2030-07-19",
      floorPlanId: plans.active,
    }),
    reserved: await unit({ status: "AVAILABLE", price: 777_000 }),
    unreleased: await unit({ price: 500_000 }),
    private: await unit({ projectId: quiet.id, status: "AVAILABLE", price: 1 }),
  };
  // A sale by the service; what leads to one has tests of its own.
  await world.owner.query(
    `select app_private.set_inventory(app_private.take_claim($1, null, 'PURCHASE', 'buyer', uuidv7()), 'SOLD', false, 770000)`,
    [units.reserved],
  );
  const { rows: events } = await world.owner.query(
    "select id from app_public.events where subject_id = $1 limit 1",
    [units.reserved],
  );
  const reads = "{ totalCount nodes { id } }";
  const update = (field: string, id: string, input: () => Record<string, unknown>) =>
    mutation(field, () => ({ id, ...input() }));
  let day = 10;
  const all = (fields: Record<string, unknown>) => ({ ids: [units.available], dryRun: true, ...fields });
  operations = {
    "unit, available": look("unit", units.available),
    "unit, reserved": look("unit", units.reserved),
    "unit, unreleased": look("unit", units.unreleased),
    "unit, available, of a private project": look("unit", units.private),
    "lot, available": look("lot", lots.available),
    "lot, unreleased": look("lot", lots.unreleased),
    "floorPlan, active": look("floorPlan", plans.active),
    "floorPlan, draft": look("floorPlan", plans.draft),
    "project.units": look("project", project.id, "units { id }"),
    "project.lots": look("project", project.id, "lots { id }"),
    "project.floorPlans": look("project", project.id, "floorPlans { id }"),
    "project.abstract": async (person) => {
      const answer = await person.ask(
        `query ($id: ID!) { project(id: $id) { abstract { unitsTotal } } }`,
        project,
      );
      return { ...answer, data: { value: answer.data.project.abstract.unitsTotal } };
    },
    units: ask("{ units { id } }"),
    unitsConnection: ask(`{ unitsConnection ${reads} }`),
    "unitsConnection of the project": ask(`query ($id: ID) { unitsConnection(projectId: $id) ${reads} }`, {
      id: project.slug,
    }),
    "unitsConnection by price of reserved": ask(
      `query ($id: ID) { unitsConnection(projectId: $id, filter: { price: { min: 777000, max: 777000 } }) ${reads} }`,
      { id: project.id },
    ),
    "unitsConnection by exact delivery": ask(
      `query ($id: ID) { unitsConnection(projectId: $id, filter: { deliveryDate: { from: "2030-07-19", to: "2030-07-19" } }) ${reads} }`,
      { id: project.id },
    ),
    recentlySoldUnits: ask("{ recentlySoldUnits { id } }"),
    "price, available": look("unit", units.available, "price"),
    "price, reserved": look("unit", units.reserved, "price"),
    "ppsf, reserved": look("unit", units.reserved, "ppsf"),
    originalListPrice: look("unit", units.reserved, "originalListPrice"),
    soldPrice: look("unit", units.reserved, "soldPrice"),
    priceHistory: look("unit", units.reserved, "priceHistory { to }"),
    events: look("unit", units.available, "events { id }"),
    "metadata of a unit": look("unit", units.available, "metadata"),
    "metadata of a lot": look("lot", lots.available, "metadata"),
    "metadata of a floor plan": look("floorPlan", plans.active, "metadata"),
    "price of a lot, available": look("lot", lots.available, "price"),
    "price of a lot, unreleased": look("lot", lots.unreleased, "price"),
    "exact delivery": async (person) => {
      const answer = await person.ask(`query ($id: ID!) { unit(id: $id) { estimatedDeliveryDate } }`, {
        id: units.available,
      });
      const date = answer.data.unit.estimatedDeliveryDate;
      return {
        ...answer,
        data: { value: date === "2030-07-19" ? "yes" : date === "2030-07-01" ? "no" : date },
      };
    },
    "events, of a unit": ask(`query ($id: ID) { events(filter: { subjectId: $id }) { id } }`, {
      id: units.available,
    }),
    "event of a unit by id": look("event", events[0].id),
    createUnit: mutation("createUnit", () => ({ projectId: project.id, title: "New" })),
    "createUnit, private project": mutation("createUnit", () => ({ projectId: quiet.id, title: "New" })),
    createLot: mutation("createLot", () => ({ projectId: project.id, number: `N${++serial}` })),
    createFloorPlan: mutation("createFloorPlan", () => ({ projectId: project.id, title: "New" })),
    "updateUnit title": update("updateUnit", units.available, () => ({ title: `T${++serial}` })),
    "updateUnit view": update("updateUnit", units.available, () => ({ view: `Lake ${++serial}` })),
    "updateUnit price": update("updateUnit", units.available, () => ({ price: 300_000 + ++serial })),
    "updateUnit bedrooms": update("updateUnit", units.available, () => ({ bedrooms: ++serial % 90 })),
    "updateUnit constructionStatus": update("updateUnit", units.available, () => ({
      constructionStatus: ++serial % 2 ? "FRAMING" : "DRYWALL",
    })),
    "updateUnit estimatedDeliveryDate": update("updateUnit", units.available, () => ({
      estimatedDeliveryDate: `2031-01-${++day}`,
    })),
    "updateUnit title, unreleased": update("updateUnit", units.unreleased, () => ({ title: `T${++serial}` })),
    "updateUnit title, private project": update("updateUnit", units.private, () => ({
      title: `T${++serial}`,
    })),
    updateLot: update("updateLot", lots.available, () => ({ block: `B${++serial}` })),
    updateFloorPlan: update("updateFloorPlan", plans.active, () => ({ subtitle: `S${++serial}` })),
    "updateUnits price": mutation("updateUnits", () => ({ projectId: project.id, ...all({ price: 1 }) })),
    "updateUnits constructionStatus": mutation("updateUnits", () => ({
      projectId: project.id,
      ...all({ constructionStatus: "COMPLETED" }),
    })),
    "updateUnits, private project": mutation("updateUnits", () => ({
      projectId: quiet.id,
      price: 2,
      ids: [units.private],
      dryRun: true,
    })),
    deleteUnit: mutation("deleteUnit", async () => ({ id: await unit({ status: "AVAILABLE", price: 1 }) })),
    deleteLot: mutation("deleteLot", async () => ({ id: await lot({ status: "AVAILABLE", price: 1 }) })),
    deleteFloorPlan: mutation("deleteFloorPlan", async () => ({ id: await plan({ status: "ACTIVE" }) })),
  };
});
afterAll(() => world.stop());

describe("who may do what with inventory", () => {
  test.each(rows)("$operation", async ({ operation, expected }) => {
    const found: string[] = [];
    for (const name of names) found.push(outcome(await operations[operation]!(people[name]!)));
    expect(Object.fromEntries(names.map((name, i) => [name, found[i]]))).toEqual(
      Object.fromEntries(names.map((name, i) => [name, expected[i]])),
    );
  });

  test("the table leaves out no operation", () => {
    expect(Object.keys(operations).sort()).toEqual(rows.map((row) => row.operation).sort());
  });
});

test("a refusal names the field, and nothing of the update is kept", async () => {
  const id = await createIn(world.owen)("createUnit", { projectId: world.project.id, title: "Whole" });
  const refused = await world.bob.refused(
    `mutation ($id: ID!) { updateUnit(input: { id: $id, constructionStatus: FRAMING, price: 5 }) { id } }`,
    { id },
  );
  expect(refused).toMatchObject({ code: "FORBIDDEN", field: "price", permission: "inventory.manage" });
  const { unit } = await world.owen.get(`query ($id: ID!) { unit(id: $id) { constructionStatus price } }`, {
    id,
  });
  expect(unit).toEqual({ constructionStatus: "NOT_STARTED", price: null });
});
