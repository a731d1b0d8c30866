/** importBuyers: purchases of a project from a CSV file. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { createLead } from "../harness/portfolio.ts";
import { createIn, type Create } from "../harness/records.ts";
import { upload } from "../harness/upload.ts";
import { startWorld, type World } from "../harness/world.ts";

let world: World;
let create: Create;

beforeAll(async () => {
  world = await startWorld();
  create = createIn(world.owen);
});
afterAll(() => world.stop());

let serial = 0;
async function newProject(units: number): Promise<string> {
  const projectId = await create("createProject", {
    organizationId: world.harbour.id,
    title: `B${++serial}`,
    currency: "CAD",
    rescissionDays: 0,
    address: { country: "CA" },
  });
  for (let n = 1; n <= units; n++)
    await create("createUnit", {
      projectId,
      title: `Home ${n}`,
      number: `${n}`,
      status: "AVAILABLE",
      price: `${400_000 + n}`,
    });
  return projectId;
}

const document = `mutation ($input: ImportBuyersInput!) { importBuyers(input: $input) {
  dryRun createdCount updatedCount skippedCount failedCount errors { row column code message value }
  buyers { fullName email phone status price unit { number status } lead { id } assignee { id } address { locality country } } } }`;

interface Import {
  projectId: string;
  dryRun?: boolean;
  updateExisting?: boolean;
  idempotencyKey?: string;
}
const send = (input: Import, file: string, person: Person = world.owen) =>
  upload(
    world,
    person,
    document,
    { input: { ...input, file: null } },
    { "variables.input.file": { bytes: Buffer.from(file), name: "buyers.csv", type: "text/csv" } },
  );
async function importing(input: Import, ...rows: string[]): Promise<any> {
  const answer = await send(input, rows.join("\n"));
  if (answer.errors) throw new Error(JSON.stringify(answer.errors));
  return answer.data.importBuyers;
}
const counts = ({ createdCount, updatedCount, skippedCount, failedCount }: any) => [
  createdCount,
  updatedCount,
  skippedCount,
  failedCount,
];
const digest = async (projectId: string) =>
  (
    await world.owner.query(
      `select (select md5(string_agg(b::text, '|' order by b.id)) from app_public.buyers b where b.project_id = $1) as buyers,
         (select count(*) from app_public.events e where e.project_id = $1) as events`,
      [projectId],
    )
  ).rows[0];

test("imports purchases with their homes, leads and members; importing again changes nothing", async () => {
  const projectId = await newProject(3);
  const lead = await createLead(world.owen, { projectId, name: "Lea Lund", email: "lea@example.com" });
  const file = [
    "\ufeffUnit #;Buyer;Email;Phone;Purchase Price;Status;Signed;Sales Rep;City;Financing",
    `1;Lea Lund;LEA@example.com;416 555 0199;"$410,000.50";in review;2026-02-01;${world.max.email};Toronto;cash`,
    "2;Bo & Sons Ltd;;;405000;;;;;",
    ";Not Yet;early@example.com;;390000;;;;;",
  ];
  const answer = await importing({ projectId }, ...file);
  expect(answer.errors).toEqual([]);
  expect(counts(answer)).toEqual([3, 0, 0, 0]);
  expect(answer.buyers).toMatchObject([
    {
      fullName: expect.stringContaining("Lea"),
      email: "lea@example.com",
      phone: "+14165550199",
      status: "IN_REVIEW",
      price: "410000.50",
      unit: { number: "1", status: "SOLD" },
      lead: { id: lead.id },
      assignee: { id: world.max.id },
      address: { locality: "Toronto", country: "CA" },
    },
    { fullName: "Bo & Sons Ltd", status: "DRAFT", unit: { number: "2", status: "PENDING" } },
    { email: "early@example.com", unit: null, price: "390000.00" },
  ]);
  const { rows } = await world.owner.query(
    "select channel, count(*)::int from app_public.events where project_id = $1 and name = 'buyer.created' group by channel",
    [projectId],
  );
  expect(rows).toEqual([{ channel: "IMPORT", count: 3 }]);
  const before = await digest(projectId);
  expect(counts(await importing({ projectId }, ...file))).toEqual([0, 0, 3, 0]);
  expect(counts(await importing({ projectId, updateExisting: true }, ...file))).toEqual([0, 0, 3, 0]);
  expect(await digest(projectId)).toEqual(before);
});

test("updates existing purchases on request, within the allowed transitions", async () => {
  const projectId = await newProject(3);
  await importing(
    { projectId },
    "unit,email,price,status",
    "1,a@example.com,400000,",
    "2,b@example.com,400000,CLOSED",
  );
  const answer = await importing(
    { projectId, updateExisting: true },
    "unit,email,price,status,phone",
    "1,a@example.com,401000,OUT_FOR_SIGNATURE,416 555 0111",
    "2,b@example.com,400000,FIRM,",
    "3,c@example.com,400000,CANCELLED,",
  );
  expect(counts(answer)).toEqual([0, 1, 0, 2]);
  expect(answer.errors).toMatchObject([
    { row: 3, column: "status", code: "INVALID_TRANSITION" },
    { row: 4, column: "status", code: "INVALID_TRANSITION" },
    { row: 4, column: "falloutReasonId", code: "BAD_USER_INPUT" },
  ]);
  expect(answer.buyers).toMatchObject([
    { status: "OUT_FOR_SIGNATURE", price: "401000.00", phone: "+14165550111" },
  ]);
});

test("imports valid rows and reports the errors of the others", async () => {
  const projectId = await newProject(5);
  await create("createReservation", { unitId: await unitId(projectId, "4"), acceptedTerms: true });
  await importing({ projectId }, "unit,email,price", "5,first@example.com,400000");
  const answer = await importing(
    { projectId },
    "Unit,Lot,First,Last,Email,Phone,Price,Status,Sales Rep,Signed",
    "1,,Ada,One,ada@example.com,,400000,,,", // valid
    "1,,Ida,Two,ida@example.com,,400000,,,", // duplicate number
    "77,,No,Unit,,,400000,,,",
    "2,L9,Both,Of,,,400000,,,",
    "3,,,,,,400000,,,", // no person
    ",,No,Price,,,,,,",
    ",,Bad,Price,,,1.005,,,",
    ",,Bad,Phone,,12,400000,,,",
    ",,Bad,Status,,,400000,SOMETIMES,,",
    ",,No,Member,,,400000,,nobody@example.com,",
    "4,,Taken,Home,,,400000,,,",
    "5,,Other,Buyer,second@example.com,,400000,,,",
    ",,=cmd(),Formula,,,400000,,,2026-13-01",
  );
  expect(counts(answer)).toEqual([1, 0, 0, 12]);
  expect(answer.errors.map((e: any) => [e.row, e.column, e.code])).toEqual([
    [3, "Unit", "CONFLICT"],
    [4, "Unit", "NOT_FOUND"],
    [5, "Lot", "BAD_USER_INPUT"],
    [5, "Lot", "NOT_FOUND"],
    [6, "legalName", "BAD_USER_INPUT"],
    [7, "Price", "BAD_USER_INPUT"],
    [8, "Price", "BAD_USER_INPUT"],
    [9, "Phone", "BAD_USER_INPUT"],
    [10, "Status", "BAD_USER_INPUT"],
    [11, "Sales Rep", "NOT_FOUND"],
    [12, "Unit", "INVENTORY_UNAVAILABLE"],
    [13, "Unit", "INVENTORY_UNAVAILABLE"],
    [14, "Signed", "BAD_USER_INPUT"],
  ]);
});

test("a dry run stores nothing, a key deduplicates, and a missing column refuses the file", async () => {
  const projectId = await newProject(2);
  const before = await digest(projectId);
  const dry = await importing(
    { projectId, dryRun: true },
    "unit,email,price",
    "1,a@example.com,400000",
    "9,b@example.com,1",
  );
  expect([dry.dryRun, ...counts(dry)]).toEqual([true, 1, 0, 0, 1]);
  expect(await digest(projectId)).toEqual(before);
  const keyed = { projectId, idempotencyKey: "buyers-1" };
  const [first, second] = [
    await importing(keyed, "unit,email,price", "1,a@example.com,400000"),
    await importing(keyed, "unit,email,price", "1,a@example.com,400000"),
  ];
  expect(second).toEqual(first);
  const { errors } = await send({ projectId }, "unit,email\n2,b@example.com");
  expect(errors![0]!.extensions).toMatchObject({ code: "BAD_USER_INPUT", columns: ["price"] });
});

test("only owners and admins can import", async () => {
  const projectId = await newProject(1);
  const rows = "email,price\nx@example.com,1";
  const code = async (person: Person) =>
    (await send({ projectId }, rows, person)).errors?.[0]?.extensions.code;
  expect(await code(world.ada)).toBeUndefined();
  expect(await code(world.max)).toBe("FORBIDDEN");
  expect(await code(world.olga)).toBe("NOT_FOUND");
  expect(await code(world.anonymous)).toBe("UNAUTHENTICATED");
});

async function unitId(projectId: string, number: string): Promise<string> {
  const { rows } = await world.owner.query(
    "select id from app_public.units where project_id = $1 and number = $2",
    [projectId, number],
  );
  return rows[0].id;
}

test("imported past sales keep the dates on which they became firm, sold and closed", async () => {
  const projectId = await newProject(3);
  const answer = await importing(
    { projectId },
    "Unit,Buyer,Price,Status,Signed,Sold on,Closed",
    "1,Bo Larsen,500000,Closed,2024-03-01,2024-03-20,2025-06-30",
    "2,Nia Rossi,510000,Firm,2024-04-02,,",
    "3,Mira Chen,520000,Firm,,,",
  );
  expect(counts(answer)).toEqual([3, 0, 0, 0]);
  const { recentlySoldUnits: sold } = await world.owen.get(
    `query ($filter: UnitsFilter) { recentlySoldUnits(filter: $filter) {
       number soldAt closedAt soldPrice buyer { purchaseDate purchaseFirmDate closingDate } } }`,
    { filter: { projectId } },
  );
  const zone = "T00:00:00";
  expect(sold.slice(1)).toMatchObject([
    {
      number: "2",
      soldAt: expect.stringContaining(`2024-04-02${zone}`),
      closedAt: null,
      soldPrice: "510000.00",
      buyer: { purchaseDate: "2024-04-02", purchaseFirmDate: "2024-04-02" },
    },
    {
      number: "1",
      soldAt: expect.stringContaining(`2024-03-20${zone}`),
      closedAt: expect.stringContaining(`2025-06-30${zone}`),
      buyer: { purchaseDate: "2024-03-01", purchaseFirmDate: "2024-03-20", closingDate: "2025-06-30" },
    },
  ]);
  // Dates that the file omits are set to the time of the import.
  expect(sold[0].number).toBe("3");
  expect(Date.now() - Date.parse(sold[0].soldAt)).toBeLessThan(86_400_000);
});
