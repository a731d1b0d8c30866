/**
 * Permissions for everything of inventory, catalogue and files: every operation, every record by its id, every
 * field, every list. The tables are the specification. Each is tried twice, while the project is private and while it is
 * public; a cell with a slash says both.
 *
 *   yes            the operation succeeds, or the record or value is visible
 *   3 · none       number of listed records · an empty list; "some" for events, whose number grows
 *   null           null without an error
 *   less           another value than the owner sees, such as a day rounded to its month
 *   hidden         the record itself is not visible
 *   a code         refused with that code: FORBID is FORBIDDEN, UNAUTH is UNAUTHENTICATED
 *
 * owner, admin and member are of Harbour Homes; the seller and the builder are members of organizations affiliated with its
 * project Harbour View; the outsider owns Summit Sales. Leads and what belongs to them: permissions.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  buildClientSchema,
  getIntrospectionQuery,
  getNamedType,
  type GraphQLEnumType,
  GraphQLInputObjectType,
  GraphQLObjectType,
  isObjectType,
  type GraphQLSchema,
} from "graphql";
import type { Answer, Person } from "../harness/api.ts";
import { camel } from "../../src/schema/codecNames.ts";
import { operationsAlike } from "../harness/coverage.ts";
import { everyField, shown, unsigned } from "../harness/fields.ts";
import { startMatrixWorld, type Input, type MatrixWorld } from "./inventoryMatrixWorld.ts";

/** Names of the operations and queries of the area; each must be in a table. */
const area =
  /(Project|Plan|Elevation|Lot|Unit|Spec[A-Z]|OpenHouse|Promotion|Testimonial|Collection|Tracker|LeasePermit|SalesOffice|Milestone|Avatar)/i;
/** Operations of other areas, with tests of their own. */
const elsewhere = [
  "contactProject",
  "exportFloorPlans",
  "exportPlans",
  "projectContactMessage",
  "projectOrganization",
  // asOf.test.ts
  "unitAsOf",
  "unitsAsOf",
  // unitHolds.test.ts
  "createUnitHold",
  "updateUnitHold",
  "deleteUnitHold",
  "unitHold",
  "unitHolds",
  "unitHoldsConnection",
  // affiliation.test.ts
  "projectOrganizationInvite",
  "createProjectOrganization",
  "updateProjectOrganization",
  "deleteProjectOrganization",
  "acceptProjectOrganizationInvite",
  "declineProjectOrganizationInvite",
  "resendProjectOrganizationInvite",
  "revokeProjectOrganizationInvite",
];

const operations = table(`
                                          | owner  | admin  | member    | seller           | builder          | outsider         | anonymous
createFloorPlan createLot createUnit      | yes    | yes    | FORBID    | FORBID           | FORBID           | NOT_FOUND/FORBID | UNAUTH
updateFloorPlan updateLot updateUnit      | yes    | yes    | FORBID    | FORBID           | FORBID           | NOT_FOUND/FORBID | UNAUTH
deleteFloorPlan deleteLot deleteUnit      | yes    | yes    | FORBID    | FORBID           | FORBID           | NOT_FOUND/FORBID | UNAUTH
updateUnits                               | yes    | yes    | FORBID    | FORBID           | FORBID           | NOT_FOUND/FORBID | UNAUTH
importUnits                               | yes    | yes    | FORBID    | FORBID           | FORBID           | NOT_FOUND/FORBID | UNAUTH
createSpecCategory createSpecElement createSpecOption | yes | yes | FORBID | FORBID         | FORBID           | NOT_FOUND/FORBID | UNAUTH
updateSpecCategory updateSpecElement updateSpecOption | yes | yes | FORBID | FORBID         | FORBID           | NOT_FOUND/FORBID | UNAUTH
deleteSpecCategory deleteSpecElement deleteSpecOption | yes | yes | FORBID | FORBID         | FORBID           | NOT_FOUND/FORBID | UNAUTH
createOpenHouse createPromotion createProjectTestimonial createTracker | yes | yes | FORBID | FORBID | FORBID   | NOT_FOUND/FORBID | UNAUTH
updateOpenHouse updatePromotion updateProjectTestimonial | yes | yes | FORBID | FORBID      | FORBID           | NOT_FOUND/FORBID | UNAUTH
deleteOpenHouse deletePromotion deleteProjectTestimonial | yes | yes | FORBID | FORBID      | FORBID           | NOT_FOUND/FORBID | UNAUTH
updateTracker deleteTracker               | yes    | yes    | FORBID    | NOT_FOUND        | NOT_FOUND        | NOT_FOUND        | UNAUTH
createProjectCollection updateProjectCollection deleteProjectCollection | yes | yes | FORBID | FORBID | FORBID  | FORBID           | UNAUTH
createLeasePermit                         | yes    | yes    | FORBID    | FORBID           | FORBID           | NOT_FOUND/FORBID | UNAUTH
updateLeasePermit deleteLeasePermit       | yes    | yes    | NOT_FOUND | NOT_FOUND        | NOT_FOUND        | NOT_FOUND        | UNAUTH
createDepositScheduleMilestone            | yes    | yes    | FORBID    | FORBID           | FORBID           | NOT_FOUND/FORBID | UNAUTH
updateDepositScheduleMilestone deleteDepositScheduleMilestone | yes | yes | FORBID | FORBID | FORBID           | NOT_FOUND/FORBID | UNAUTH
updateSalesOffice                         | yes    | yes    | FORBID    | FORBID           | FORBID           | NOT_FOUND/FORBID | UNAUTH
createProject                             | yes    | yes    | FORBID    | FORBID           | FORBID           | FORBID           | UNAUTH
updateProject                             | yes    | yes    | FORBID    | FORBID           | FORBID           | NOT_FOUND/FORBID | UNAUTH
deleteProject                             | yes    | yes    | FORBID    | NOT_FOUND/FORBID | NOT_FOUND/FORBID | NOT_FOUND/FORBID | UNAUTH
uploadOrganizationAvatar updateOrganizationAvatar deleteOrganizationAvatar | yes | FORBID | FORBID | FORBID | FORBID | FORBID    | UNAUTH
uploadProjectAvatar updateProjectAvatar deleteProjectAvatar | yes | yes | FORBID | FORBID   | FORBID           | NOT_FOUND/FORBID | UNAUTH
uploadProjectImage updateProjectImage deleteProjectImage | yes | yes | FORBID | FORBID      | FORBID           | NOT_FOUND/FORBID | UNAUTH
uploadSitePlan updateSitePlan deleteSitePlan | yes | yes   | FORBID    | FORBID           | FORBID           | NOT_FOUND/FORBID | UNAUTH
uploadFloorPlanImage updateFloorPlanImage deleteFloorPlanImage | yes | yes | FORBID | FORBID | FORBID          | NOT_FOUND/FORBID | UNAUTH
uploadElevationImage updateElevationImage deleteElevationImage | yes | yes | FORBID | FORBID | FORBID          | NOT_FOUND/FORBID | UNAUTH
uploadFloorPlanDrawing updateFloorPlanDrawing deleteFloorPlanDrawing | yes | yes | FORBID | FORBID | FORBID    | NOT_FOUND/FORBID | UNAUTH
uploadLotImage updateLotImage deleteLotImage | yes | yes   | FORBID    | FORBID           | FORBID           | NOT_FOUND/FORBID | UNAUTH
uploadUnitImage updateUnitImage deleteUnitImage | yes | yes | FORBID   | FORBID           | FORBID           | NOT_FOUND/FORBID | UNAUTH
uploadProjectDocument uploadFloorPlanDocument | yes | yes  | FORBID    | FORBID           | FORBID           | NOT_FOUND/FORBID | UNAUTH
updateProjectDocument deleteProjectDocument | yes | yes    | FORBID    | FORBID           | NOT_FOUND        | NOT_FOUND        | UNAUTH
updateFloorPlanDocument deleteFloorPlanDocument | yes | yes | FORBID   | FORBID           | NOT_FOUND        | NOT_FOUND        | UNAUTH
`);

/** Each field of UpdateUnitInput and UpdateUnitsInput. */
const members = table(`
                                                    | owner | admin | member | seller | builder | outsider         | anonymous
unit: title subtitle description view orientation metadata | yes | yes | yes | FORBID | FORBID  | NOT_FOUND/FORBID | UNAUTH
unit: constructionStatus estimatedDeliveryDate      | yes   | yes   | FORBID | FORBID | yes     | NOT_FOUND/FORBID | UNAUTH
unit: number floorPlanId lotId building level phase | yes   | yes   | FORBID | FORBID | FORBID  | NOT_FOUND/FORBID | UNAUTH
unit: status price hoaFee listingDate mlsId address | yes   | yes   | FORBID | FORBID | FORBID  | NOT_FOUND/FORBID | UNAUTH
unit: bedrooms baths halfBaths garage sqft          | yes   | yes   | FORBID | FORBID | FORBID  | NOT_FOUND/FORBID | UNAUTH
unit: model isSpec isBmr isFurnished isAccessible   | yes   | yes   | FORBID | FORBID | FORBID  | NOT_FOUND/FORBID | UNAUTH
units: price priceDeltaPercent status               | yes   | yes   | FORBID | FORBID | FORBID  | NOT_FOUND/FORBID | UNAUTH
units: constructionStatus estimatedDeliveryDate     | yes   | yes   | FORBID | FORBID | yes     | NOT_FOUND/FORBID | UNAUTH
`);

/** Each record by its id. */
const records = table(`
                                                        | owner | admin | member | seller | builder | outsider | anonymous
Project                                                 | yes   | yes   | yes    | yes    | yes     | null/yes | null/yes
FloorPlan Lot Lot:sold Unit Unit:sold                   | yes   | yes   | yes    | yes    | yes     | null/yes | null/yes
FloorPlan:draft Lot:unreleased Unit:unreleased          | yes   | yes   | yes    | yes    | yes     | null     | null
SpecCategory SpecElement SpecOption                     | yes   | yes   | yes    | yes    | yes     | null/yes | null/yes
SpecOption:inactive                                     | yes   | yes   | yes    | yes    | yes     | null     | null
OpenHouse ProjectTestimonial SalesOffice                | yes   | yes   | yes    | yes    | yes     | null/yes | null/yes
Promotion Promotion:ofUnits Promotion:ofLots Promotion:ofFloorPlans | yes | yes | yes | yes | yes     | null/yes | null/yes
OpenHouse:inside Promotion:draft Promotion:inside       | yes   | yes   | yes    | yes    | yes     | null     | null
ProjectTestimonial:unpublished                          | yes   | yes   | yes    | yes    | yes     | null     | null
ProjectCollection                                       | yes   | yes   | yes    | yes    | yes     | yes      | yes
ProjectCollection:inside                                | yes   | yes   | yes    | null   | null    | null     | null
DepositScheduleMilestone                                | yes   | yes   | yes    | yes    | yes     | null/yes | null/yes
Tracker                                                 | yes   | yes   | yes    | null   | null    | null     | null
LeasePermit                                             | yes   | yes   | null   | null   | null    | null     | null
OrganizationAvatar                                      | yes   | yes   | yes    | yes    | yes     | yes      | yes
ProjectAvatar ProjectImage SitePlan                     | yes   | yes   | yes    | yes    | yes     | null/yes | null/yes
FloorPlanImage ElevationImage FloorPlanDrawing          | yes   | yes   | yes    | yes    | yes     | null/yes | null/yes
LotImage UnitImage                                      | yes   | yes   | yes    | yes    | yes     | null/yes | null/yes
FloorPlanImage:ofDraft ElevationImage:ofDraft FloorPlanDrawing:ofDraft | yes | yes | yes | yes | yes  | null     | null
FloorPlanDocument:publicOfDraft LotImage:ofUnreleased UnitImage:ofUnreleased | yes | yes | yes | yes | yes | null | null
ProjectDocument FloorPlanDocument                       | yes   | yes   | yes    | yes    | null    | null     | null
ProjectDocument:public FloorPlanDocument:public         | yes   | yes   | yes    | yes    | yes     | null/yes | null/yes
`);

/**
 * Fields that are not visible to everybody who sees the record: of one record, of all of a type (`Unit*`), or
 * of all types. A list that requires a permission and is not here has the same visibility as a listed one
 * with that permission. Each other field is visible to everybody who sees the record, according to the table
 * above.
 */
const fields = table(`
                                                                                | owner | admin | member | seller | builder | outsider | anonymous
*.uploadedBy OpenHouse.host                                                     | yes   | yes   | yes    | null   | null    | null     | null
*.events                                                                        | some  | some  | some   | some   | some    | none     | none
Project*.events FloorPlan*.events Lot*.events Unit*.events                      | some  | some  | null   | null   | null    | null     | null
Promotion*.events OrganizationAvatar*.events ProjectCollection*.events          | some  | some  | some   | none   | none    | none     | none
SpecOption*.events                                                              | some  | some  | none   | none   | none    | none     | none
Project.metadata                                                                | yes   | yes   | yes    | yes    | yes     | null     | null
FloorPlan*.metadata Lot*.metadata Unit*.metadata                                | yes   | yes   | yes    | yes    | null    | null     | null
Project.abstract                                                                | yes   | yes   | yes    | yes    | less    | less     | less
Project.units Project.lots                                                      | 3     | 3     | 3      | 3      | 3       | 2        | 2
Project.floorPlans                                                              | 2     | 2     | 2      | 2      | 2       | 1        | 1
Project.documents FloorPlan.documents                                           | 2     | 2     | 2      | 2      | 1       | 1        | 1
Project.openHouses Project.testimonials                                         | 2     | 2     | 2      | 2      | 2       | 1        | 1
Project.promotions                                                              | 6     | 6     | 6      | 6      | 6       | 4        | 4
Project.collections                                                             | 2     | 2     | 2      | 1      | 1       | 1        | 1
Project.organizations                                                           | 3     | 3     | 3      | 2      | 2       | none     | none
Project.organizationInvites                                                     | none  | none  | null   | null   | null    | null     | null
Project.leads                                                                   | 2     | 2     | 2      | 1      | null    | null     | null
Project.leadSources                                                             | 6     | 6     | 6      | 6      | null    | null     | null
Project.falloutReasons                                                          | 5     | 5     | 5      | 5      | null    | null     | null
Project.buyers Project.reservations Lot*.reservations                           | none  | none  | none   | none   | null    | null     | null
Lot*.holds Unit*.holds                                                          | none  | none  | none   | none   | null    | null     | null
Unit*.reservations Unit*.negotiations Unit*.personalizations                    | none  | none  | none   | none   | null    | null     | null
Project.negotiations Project.offers                                             | none  | none  | none   | none   | null    | null     | null
Project.deposits                                                                | none  | none  | null   | null   | null    | null     | null
Project.charges                                                                 | none  | none  | null   | null   | null    | null     | null
Project.trackers                                                                | 1     | 1     | 1      | null   | null    | null     | null
Project.leasePermits                                                            | 1     | 1     | null   | null   | null    | null     | null
Lot:sold.price Lot:sold.premium Lot:unreleased.price Lot:unreleased.premium     | yes   | yes   | yes    | yes    | null    | null     | null
Unit:sold.price Unit:sold.ppsf Unit:unreleased.price Unit:unreleased.ppsf       | yes   | yes   | yes    | yes    | null    | null     | null
Unit*.originalListPrice Unit:sold.soldPrice                                     | yes   | yes   | yes    | yes    | null    | null     | null
Lot*.priceHistory Unit*.priceHistory                                            | 1     | 1     | 1      | 1      | null    | null     | null
Unit*.estimatedDeliveryDate                                                     | yes   | yes   | yes    | yes    | yes     | less     | less
Unit.leasePermit                                                                | yes   | yes   | null   | null   | null    | null     | null
Unit.promotions                                                                 | 4     | 4     | 4      | 4      | 4       | 3        | 3
Unit:sold.promotions                                                            | 2     | 2     | 2      | 2      | 2       | 1        | 1
Promotion:ofUnits.units Promotion:ofLots.lots Promotion:ofFloorPlans.floorPlans | 2     | 2     | 2      | 2      | 2       | 1        | 1
SpecElement.options                                                             | 2     | 2     | 2      | 2      | 2       | 1        | 1
SpecOption*.cost                                                                | yes   | yes   | null   | null   | null    | null     | null
ProjectCollection*.cover                                                        | yes   | yes   | yes    | yes    | yes     | null/yes | null/yes
ProjectCollection*.projects                                                     | 1     | 1     | 1      | 1      | 1       | none/1   | none/1
`);

/** Root lists and connections. */
const lists = table(`
                                                                             | owner  | admin  | member | seller | builder | outsider | anonymous
projects                                                                     | 3      | 3      | 3      | 1      | 1       | 1        | none
projectsConnection                                                           | 3      | 3      | 3      | 1      | 1       | 1        | none
projectsConnection(filter: { price: { min: 2000, max: 2000 } })              | none   | none   | none   | none   | none    | none     | none
publicProjects                                                               | 1/2    | 1/2    | 1/2    | 1/2    | 1/2     | 1/2      | 1/2
publicProjects(filter: { price: { min: 1000, max: 1000 } })                  | none/1 | none/1 | none/1 | none/1 | none/1  | none/1   | none/1
units                                                                        | 3      | 3      | 3      | 3      | 3       | none     | none
unitsConnection                                                              | 3      | 3      | 3      | 3      | 3       | none     | none
unitsConnection(filter: { query: "name" })                                   | 3      | 3      | 3      | 3      | 3       | none     | none
unitsConnection(projectId: $id)                                              | 3      | 3      | 3      | 3      | 3       | none/2   | none/2
unitsConnection(projectId: $id, filter: { query: "name" })                   | 3      | 3      | 3      | 3      | 3       | none/2   | none/2
unitsConnection(projectId: $id, filter: { status: [UNRELEASED] })            | 1      | 1      | 1      | 1      | 1       | none     | none
unitsConnection(projectId: $id, filter: { price: { min: 2000, max: 2000 } }) | 1      | 1      | 1      | 1      | none    | none     | none
unitsConnection(projectId: $id, filter: { deliveryDate: { from: "2030-07-19", to: "2030-07-19" } }) | 3      | 3      | 3      | 3      | 3       | none     | none
unitsConnection(projectId: $id, filter: { includeDeleted: true })            | 3      | 3      | 3      | 3      | 3       | none/2   | none/2
recentlySoldUnits                                                            | 1      | 1      | 1      | 1      | 1       | none/1   | none/1
events(filter: { subjectId: "Unit:sold" })                                   | 3      | 3      | 3      | none   | none    | none     | none  
events(filter: { subjectId: "SpecOption" })                                  | 1      | 1      | none   | none   | none    | none     | none  
events(filter: { subjectId: "LeasePermit" })                                 | 2      | 2      | none   | none   | none    | none     | none  
`);

interface Row {
  name: string;
  expected: Record<string, string>;
}

function table(text: string): Row[] {
  const [header, ...lines] = text.replace(/^\n+|\s+$/g, "").split("\n");
  const cells = (line: string) => line.split("|").map((cell) => cell.trim());
  const roles = cells(header!).filter(Boolean);
  return lines.map((line) => {
    const [name, ...values] = cells(line);
    if (values.length !== roles.length) throw new Error(`Cells are missing: ${line}`);
    return { name: name!, expected: Object.fromEntries(roles.map((role, i) => [role, values[i]!])) };
  });
}

/** One row for each word of its name; a prefix that ends in a colon applies to each. */
const perWord = (rows: Row[]): Row[] =>
  rows.flatMap(({ name, expected }) => {
    const [, prefix = "", words] = /^(\w+: )?\s*(.*)$/.exec(name)!;
    return words!.split(/\s+/).map((word) => ({ name: prefix.trim() + word, expected }));
  });

type Visibility = "PRIVATE" | "PUBLIC";
const expectedAt = (row: Row, visibility: Visibility): Record<string, string> =>
  Object.fromEntries(
    Object.entries(row.expected).map(([role, cell]) => {
      const [atPrivate, atPublic = atPrivate] = cell.split("/");
      return [role, visibility === "PRIVATE" ? atPrivate! : atPublic!];
    }),
  );

const codes: Record<string, string> = { FORBIDDEN: "FORBID", UNAUTHENTICATED: "UNAUTH" };
function refusal(answer: Answer): string | null {
  const [error] = answer.errors ?? [];
  if (!error) return null;
  // A refusal names a sufficient permission, and reveals nothing of the implementation.
  const permission = error.extensions.code === "FORBIDDEN" ? error.extensions.permission : "none.needed";
  expect(permission).toMatch(/^[a-z]+\.[a-z]+$/);
  expect(error.message).not.toMatch(/policy|app_(public|hidden|private)|permission denied/);
  return codes[error.extensions.code] ?? error.extensions.code;
}

let world: MatrixWorld;
let schema: GraphQLSchema;

beforeAll(async () => {
  world = await startMatrixWorld();
  schema = buildClientSchema(await world.owen.get(getIntrospectionQuery()));
});
afterAll(() => world.stop());

const each = async (work: (person: Person, role: string) => Promise<string>) => {
  const found: Record<string, string> = {};
  for (const [role, person] of Object.entries(world.people)) found[role] = await work(person, role);
  return found;
};

/**
 * The permissions that lists of a record require, by type and field, such as `Project.trackers`:
 * marketing.read.
 */
async function permissionsOfLists(): Promise<Map<string, string>> {
  const { rows } = await world.owner.query<{ subject: string; field: string; permission: string }>(`
    select r.subject, substring(d.description from '@foreignFieldName (\\w+)') as field,
      substring(d.description from '@backwardPermission ([a-z.]+)') as permission
    from pg_constraint c join pg_description d on d.objoid = c.oid and d.classoid = 'pg_constraint'::regclass
    join app_hidden.record_types r on 'app_public.' || r.table_name = c.confrelid::regclass::text
    where c.contype = 'f' and d.description like '%@backwardPermission %' and d.description like '%@foreignFieldName %'`);
  return new Map(
    rows.map(({ subject, field, permission }) => [`${camel(`_${subject}`)}.${field}`, permission]),
  );
}

/** A list on the same type that requires the same permission and is in the table. */
function listLike(
  list: string,
  permissions: Map<string, string>,
  rows: Map<string, unknown>,
): string | undefined {
  const permission = permissions.get(list);
  const [type] = list.split(".");
  return [...permissions.keys()].find(
    (other) =>
      permission !== undefined &&
      other.startsWith(`${type}.`) &&
      permissions.get(other) === permission &&
      rows.has(other),
  );
}

describe.each<Visibility>(["PRIVATE", "PUBLIC"])("visibility while the project is %s", (visibility) => {
  /** Every field of each record, as visible to each person. */
  const seenOf = new Map<string, Map<string, Record<string, unknown> | null>>();
  beforeAll(async () => {
    await world.setVisibility(visibility);
    for (const [name, { finder, type, id }] of Object.entries(world.records)) {
      const seen = new Map<string, Record<string, unknown> | null>();
      for (const [role, person] of Object.entries(world.people))
        seen.set(role, await everyField(schema, person, finder, type, id));
      seenOf.set(name, seen);
    }
  });

  test("records by id", async () => {
    const found: Row[] = [];
    for (const [name, seen] of seenOf) {
      const cells = [...seen].map(([role, record]) => [role, record ? "yes" : "null"]);
      found.push({ name, expected: Object.fromEntries(cells) });
    }
    const wanted = perWord(records).map((row) => ({ name: row.name, expected: expectedAt(row, visibility) }));
    expect(byName(found)).toEqual(byName(wanted));
  });

  test("fields", async () => {
    const permissions = await permissionsOfLists();
    const rows = new Map(perWord(fields).map((row) => [row.name, expectedAt(row, visibility)]));
    const met = new Set<string>();
    const [found, wanted]: [Row[], Row[]] = [[], []];
    for (const [name, seen] of seenOf) {
      const { type } = world.records[name]!;
      for (const [field, ownersValue] of Object.entries(seen.get("owner")!)) {
        const row = [`${name}.${field}`, `${type}*.${field}`, `*.${field}`].find((key) => rows.has(key));
        const like = row ? undefined : rows.get(listLike(`${type}.${field}`, permissions, rows) ?? "");
        const [is, should]: [Record<string, string>, Record<string, string>] = [{}, {}];
        for (const [role, record] of seen) {
          // The visibility of the record is tested by another table.
          if (!record) continue;
          is[role] = shown(record[field], ownersValue);
          if (row && ownersValue !== null) should[role] = rows.get(row)![role]!;
          else should[role] = like?.[role] === "null" ? "null" : shown(ownersValue, ownersValue);
        }
        if (row && ownersValue !== null) met.add(row);
        found.push({ name: `${name}.${field}`, expected: is });
        wanted.push({ name: `${name}.${field}`, expected: should });
      }
    }
    expect(byName(found)).toEqual(byName(wanted));
    expect([...rows.keys()].filter((name) => !met.has(name))).toEqual([]);
  });

  test("lists and connections", async () => {
    const found: Row[] = [];
    for (const { name } of lists)
      found.push({ name, expected: await each((person) => counted(person, name)) });
    const wanted = lists.map((row) => ({ name: row.name, expected: expectedAt(row, visibility) }));
    expect(byName(found)).toEqual(byName(wanted));
  });
});

test("non-members cannot infer what is hidden from them", async () => {
  await world.setVisibility("PUBLIC");
  const outsiders = [world.olga, world.anonymous];
  const before = await Promise.all(outsiders.map(everythingPublic));
  const inside = await everythingPublic(world.sam);
  const update = (label: string, input: Input) => {
    const { type, id } = world.records[label]!;
    const field = `update${type === "FloorPlanElevationImage" ? "ElevationImage" : type}`;
    return world.tries(world.owen, field, { id, ...input });
  };
  const plan = world.records.FloorPlan!.id;
  const answers = [
    await update("Unit:sold", {
      price: 3333,
      hoaFee: null,
      metadata: { b: 2 },
      estimatedDeliveryDate: "2030-07-02",
    }),
    await update("Unit", { metadata: { b: 2 }, estimatedDeliveryDate: "2030-07-30" }),
    await update("Unit:unreleased", {
      price: 1,
      title: "Secret",
      bedrooms: 9,
      sqft: 9999,
      floorPlanId: plan,
    }),
    await update("Lot:sold", { price: 3333, premium: 3333, metadata: { b: 2 } }),
    await update("Lot:unreleased", { price: 1, areaSqft: 9999, multiUnit: true }),
    await update("FloorPlan", { metadata: { b: 2 } }),
    await update("FloorPlan:draft", { title: "Secret", basePrice: 1, bedrooms: 9 }),
    await update("SpecOption", { cost: 1 }),
    await update("SpecOption:inactive", { price: 1 }),
    await update("OpenHouse:inside", { title: "Secret" }),
    await update("Promotion:draft", { title: "Secret", startsAt: "2020-01-01T00:00:00Z" }),
    await update("Promotion:inside", { title: "Secret" }),
    await update("ProjectTestimonial:unpublished", { text: "Secret", sequence: -1 }),
    await update("ProjectDocument", { title: "Secret" }),
    await update("FloorPlanDocument:publicOfDraft", { title: "Secret" }),
    await update("UnitImage:ofUnreleased", { alt: "Secret" }),
    await update("Tracker", { name: "Secret" }),
    await update("LeasePermit", { notes: "Secret", price: 1 }),
    await update("Project", { metadata: { b: 2 } }),
  ];
  expect(answers.flatMap((answer) => answer.errors ?? [])).toEqual([]);
  const extra = [
    await world.make("Unit", { status: "UNRELEASED", floorPlanId: plan, bedrooms: 12, price: 5 }),
    await world.make("Lot", { status: "UNRELEASED", price: 5 }),
    await world.make("FloorPlan", { status: "DRAFT", basePrice: 5 }),
  ];
  await world.make("FloorPlanImage", { floorPlanId: extra[2] });
  await update("Promotion:ofUnits", {
    unitIds: [world.records.Unit!.id, world.records["Unit:unreleased"]!.id, extra[0]],
  });
  expect(await Promise.all(outsiders.map(everythingPublic))).toEqual(before);
  expect(await everythingPublic(world.sam)).not.toEqual(inside);
});

test("an event is visible to viewers of its data", async () => {
  const { events } = await world.owen.get(`query ($id: ID) { events(filter: { subjectId: $id }) { id } }`, {
    id: world.records["Unit:sold"]!.id,
  });
  const query = `query ($id: ID!) { event(id: $id) { id } }`;
  expect(
    await each(async (person) => ((await person.sees(query, events[0])).event ? "yes" : "null")),
  ).toEqual({
    owner: "yes",
    admin: "yes",
    member: "yes",
    seller: "yes",
    builder: "null",
    outsider: "null",
    anonymous: "null",
  });
});

test("a refusal names the field, and the update changes nothing", async () => {
  const id = await world.make("Unit");
  const refused = await world.bob.refused(
    `mutation ($id: ID!) { updateUnit(input: { id: $id, constructionStatus: FRAMING, price: 5 }) { id } }`,
    { id },
  );
  expect(refused).toMatchObject({ code: "FORBIDDEN", field: "price", permission: "inventory.manage" });
  const { unit } = await world.owen.get(`query ($id: ID!) { unit(id: $id) { constructionStatus price } }`, {
    id,
  });
  expect(unit).toEqual({ constructionStatus: "NOT_STARTED", price: "1000.00" });
});

describe.each<Visibility>(["PRIVATE", "PUBLIC"])("operations while the project is %s", (visibility) => {
  beforeAll(() => world.setVisibility(visibility));

  test.each(perWord(operations))("$name", async (row) => {
    const found = await each(async (person) => {
      const answer = await world.tries(person, row.name, await inputOf(row.name, visibility));
      const refused = refusal(answer);
      if (refused === null) forget(row.name);
      return refused ?? "yes";
    });
    expect(found).toEqual(expectedAt(row, visibility));
  });

  test.each(perWord(members))("field $name", async (row) => {
    const [operation, member] = row.name.split(":") as [string, string];
    const id = world.records.Unit!.id;
    const found = await each(async (person) => {
      const value = { [member]: await changed(member) };
      const answer =
        operation === "unit"
          ? await world.tries(person, "updateUnit", { id, ...value })
          : await world.tries(person, "updateUnits", {
              projectId: world.project.id,
              ids: [id],
              dryRun: true,
              ...value,
            });
      return refusal(answer) ?? "yes";
    });
    expect(found).toEqual(expectedAt(row, visibility));
  });
});

test("the tables contain every operation, query and field of the area", async () => {
  const served = [schema.getMutationType()!, schema.getQueryType()!].flatMap((type) =>
    Object.values(type.getFields()),
  );
  const types = Object.values(world.records).map(({ type }) => type);
  const tested = await operationsAlike(served, types, world.owner);
  const names = (type: GraphQLObjectType | GraphQLInputObjectType) => Object.keys(type.getFields());
  const ofArea = (all: string[]) =>
    all.filter((name) => area.test(name) && !elsewhere.includes(name) && !tested.has(name)).sort();
  expect(
    perWord(operations)
      .map((row) => row.name)
      .sort(),
  ).toEqual(ofArea(names(schema.getMutationType()!)));
  const finders = Object.values(world.records).map((record) => record.finder);
  const listed = ofArea(lists.map((row) => row.name.split(/\W/)[0]!));
  expect([...new Set([...finders, ...listed, "publicProject"])].sort()).toEqual(
    ofArea(names(schema.getQueryType()!)),
  );
  const given = (type: string, not: string[]) =>
    names(schema.getType(type) as GraphQLInputObjectType)
      .filter((name) => ![...not, "id", "expectedVersion", "idempotencyKey"].includes(name))
      .sort();
  const tried = (prefix: string) =>
    perWord(members)
      .filter((row) => row.name.startsWith(prefix))
      .map((row) => row.name.slice(prefix.length))
      .sort();
  expect(tried("unit:")).toEqual(given("UpdateUnitInput", ["dryRun"]));
  expect(tried("units:")).toEqual(given("UpdateUnitsInput", ["projectId", "ids", "filter", "dryRun"]));
});

/** Rows by name, so that a difference shows the row. */
const byName = (rows: Row[]) =>
  Object.fromEntries(rows.map(({ name, expected }) => [name, Object.values(expected).join(" | ")]));

const doomed = new Map<string, string>();
const forget = (field: string) => doomed.delete(field);

/** The input with which an operation is tried; a record is created for each deletion. */
async function inputOf(field: string, visibility: Visibility): Promise<Input> {
  const [, verb, type] = /^(create|upload|update|delete|import)(.*)$/.exec(field)!;
  const own = { projectId: world.project.id };
  if (field === "updateUnits") return { ...own, ids: [world.records.Unit!.id], price: 1000, dryRun: true };
  if (field === "importUnits") return { ...own, file: csv, dryRun: true };
  if (field === "updateSalesOffice") return { ...own, title: "Pier 2" };
  const project = { organizationId: world.harbour.id, title: "New", visibility };
  if (field === "createProject") return project;
  if (field === "updateProject") return { id: world.project.id, design: `D${Math.random()}` };
  if (verb === "create" || verb === "upload") return world.kinds[type!]!.create();
  if (type!.endsWith("Avatar")) {
    // A new one replaces the previous one, so each is tried on a record of its own.
    const id = await world.make(type!);
    if (verb === "update") return { id, alt: "New" };
    return type === "ProjectAvatar" ? own : { organizationId: world.harbour.id };
  }
  if (verb === "update") return { id: world.records[type!]!.id, ...world.kinds[type!]!.change() };
  if (!doomed.has(field)) {
    const made =
      type === "Project"
        ? (
            await world.owen.get(
              `mutation ($input: CreateProjectInput!) { createProject(input: $input) { id } }`,
              { input: project },
            )
          ).createProject.id
        : await world.make(type!);
    doomed.set(field, made);
  }
  return { id: doomed.get(field)! };
}

const csv = `data:text/csv;base64,${Buffer.from("number,title\nI-1,Home\n").toString("base64")}`;

let serial = 0;

/** A value that differs each time. */
async function changed(member: string): Promise<unknown> {
  const n = ++serial;
  if (member === "floorPlanId") return world.make("FloorPlan");
  if (member === "lotId") return world.make("Lot", { multiUnit: true });
  if (member === "status") return n % 2 ? "OFF_MARKET" : "AVAILABLE";
  if (member === "constructionStatus") return n % 2 ? "FRAMING" : "DRYWALL";
  if (member === "orientation") return ["N", "NE", "E", "SE", "S", "SW", "W", "NW"][n % 8];
  if (member === "address") return { locality: `City ${n}` };
  if (member === "metadata") return { n };
  if (/Date$/.test(member)) return `2031-01-${String(1 + (n % 28)).padStart(2, "0")}`;
  if (/^(model|is[A-Z].*)$/.test(member)) return n % 2 === 0;
  if (/^(level|bedrooms|baths|halfBaths|garage)$/.test(member)) return n % 90;
  if (/^(sqft|price|hoaFee)$/.test(member)) return 1000 + n;
  if (member === "priceDeltaPercent") return 1;
  return `Value ${n}`;
}

/** Versions and times show that something changed, but not what. */
const silent = new Set(["version", "updatedAt"]);

/**
 * Everything that a non-member can read of the project: each field of each record, aggregates, groups,
 * orders, filters by price.
 */
async function everythingPublic(person: Person): Promise<Record<string, unknown>> {
  const result: Record<string, unknown> = {};
  for (const [name, { finder, type, id }] of Object.entries(world.records)) {
    const record = await everyField(schema, person, finder, type, id);
    result[name] =
      record &&
      JSON.parse(
        JSON.stringify(
          Object.fromEntries(Object.entries(record).filter(([field]) => !silent.has(field))),
          unsigned,
        ),
      );
  }
  const values = (type: string) =>
    (schema.getType(type) as GraphQLEnumType).getValues().map((value) => value.name);
  const ask = async (query: string) =>
    Object.assign(result, await person.sees(`query ($id: ID!) { ${query} }`, { id: world.project.id }));
  const aggregates = schema.getType("UnitAggregates") as GraphQLObjectType;
  for (const [name, field] of Object.entries(aggregates.getFields())) {
    const type = getNamedType(field.type);
    if (!isObjectType(type)) continue;
    const sums = Object.keys(type.getFields()).filter((member) => !silent.has(member));
    await ask(
      `sums_${name}: unitsConnection(projectId: $id) { totalCount aggregates { ${name} { ${sums.join(" ")} } } }`,
    );
  }
  for (const value of values("UnitGroupBy").filter((name) => !name.startsWith("UPDATED_AT")))
    await ask(
      `by_${value}: unitsConnection(projectId: $id) { groupedAggregates(groupBy: [${value}]) { keys distinctCount { id } } }`,
    );
  for (const value of values("UnitsOrderBy"))
    await ask(`in_${value}: unitsConnection(projectId: $id, orderBy: [${value}]) { nodes { id } }`);
  for (const value of values("ProjectsSort").filter((name) => name !== "UPDATED_AT"))
    await ask(`sorted_${value}: publicProjects(sort: ${value}) { id } same: project(id: $id) { id }`);
  for (const price of [1, 5, 1000, 2000, 3333]) {
    const filter = `filter: { price: { min: ${price}, max: ${price} } }`;
    await ask(`at_${price}: project(id: $id) { units(${filter}) { id } lots(${filter}) { id } floorPlans(${filter}) { id } }
      among_${price}: publicProjects(${filter}) { id }`);
  }
  await ask(`nested: project(id: $id) {
    units(first: 20) { id price ppsf floorPlan { id title priceMin availableCount images { id } documents { id title } } lot { id price premium }
      images { id alt } promotions(first: 5) { id title units { id title } lots { id } floorPlans { id title } } }
    lots { id price premium units { id } images { id } } floorPlans { id title units { id bedrooms } images { id } }
    specCategories(first: 5) { elements { options { id price cost } standardOption { id } } } documents { id title } testimonials { id text }
    openHouses { id title } promotions { id title } abstract { unitsTotal bedroomsMax priceMin } }
    recentlySoldUnits { id price soldPrice ppsf originalListPrice metadata }`);
  await ask(
    `found: project(id: $id) { units(filter: { query: "secret" }) { id } floorPlans(filter: { query: "secret" }) { id } }`,
  );
  return result;
}

/** The number of records in a root list; for a connection, its nodes, counts, aggregates and groups must agree. */
async function counted(person: Person, name: string): Promise<string> {
  const field = name.split(/\W/)[0]!;
  const list = name.replace(/(?<=subjectId: ")[^"]+/, (label) => world.records[label]!.id);
  const isConnection = field.endsWith("Connection");
  const query = isConnection
    ? `query ($id: ID!) { list: ${list} { totalCount nodes { id } aggregates { distinctCount { id } }
        groupedAggregates(groupBy: [STATUS]) { distinctCount { id } } } same: project(id: $id) { id } }`
    : `query ($id: ID!) { list: ${list} { id } same: project(id: $id) { id } }`;
  const { list: rows } = await person.sees(query, { id: world.project.id });
  if (!rows) return "none";
  if (!isConnection) return String(rows.length || "none");
  const groups = rows.groupedAggregates.map((group: any) => Number(group.distinctCount.id));
  const counts = new Set<number>([
    rows.totalCount,
    rows.nodes.length,
    Number(rows.aggregates.distinctCount.id),
    groups.reduce((sum: number, count: number) => sum + count, 0),
  ]);
  return counts.size === 1 ? String([...counts][0] || "none") : `counts differ: ${[...counts].join(", ")}`;
}
