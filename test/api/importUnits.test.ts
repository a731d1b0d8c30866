/** importUnits: units of a project from a CSV file. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { join as inFolder } from "node:path";
import { readdir } from "node:fs/promises";
import type { Person } from "../harness/api.ts";
import { createIn, type Create } from "../harness/records.ts";
import { upload } from "../harness/upload.ts";
import { affiliate, startWorld, type World } from "../harness/world.ts";

let world: World;
let create: Create;

beforeAll(async () => {
  world = await startWorld();
  create = createIn(world.owen);
});
afterAll(() => world.stop());

let serial = 0;
const newProject = (input: Record<string, unknown> = {}): Promise<string> =>
  create("createProject", {
    organizationId: world.harbour.id,
    title: `I${++serial}`,
    currency: "CAD",
    ...input,
  });

const payload = `dryRun createdCount updatedCount skippedCount failedCount errors { row column code message value }
  units { id number title status price bedrooms floorPlan { title } lot { number } version }`;
const document = `mutation ($input: ImportUnitsInput!) { importUnits(input: $input) { ${payload} } }`;

interface Import {
  projectId: string;
  dryRun?: boolean;
  updateExisting?: boolean;
  idempotencyKey?: string;
}
const send = (input: Import, file: string | Buffer, person: Person = world.owen) =>
  upload(
    world,
    person,
    document,
    { input: { ...input, file: null } },
    { "variables.input.file": { bytes: Buffer.from(file), name: "units.csv", type: "text/csv" } },
  );
/** Imports a file that must be accepted. */
async function importing(input: Import, file: string | Buffer): Promise<any> {
  const answer = await send(input, file);
  if (answer.errors) throw new Error(JSON.stringify(answer.errors));
  return answer.data.importUnits;
}
/** Imports a file that must be refused as a whole. */
async function refused(input: Import, file: string | Buffer, person?: Person): Promise<any> {
  const { data, errors } = await send(input, file, person);
  expect(data?.importUnits ?? null).toBeNull();
  return { ...errors![0]!.extensions, message: errors![0]!.message };
}
const counts = ({ createdCount, updatedCount, skippedCount, failedCount }: any) => [
  createdCount,
  updatedCount,
  skippedCount,
  failedCount,
];
const numbers = async (projectId: string): Promise<string[]> =>
  (
    await world.owner.query(
      "select number from app_public.units where project_id = $1 and deleted_at is null order by id",
      [projectId],
    )
  ).rows.map((row) => row.number);
const events = async (projectId: string): Promise<[string, string][]> =>
  (
    await world.owner.query(
      "select name, channel from app_public.events where project_id = $1 and subject_type = 'unit' order by sequence",
      [projectId],
    )
  ).rows.map((row) => [row.name, row.channel]);

test("imports units from a file, with one event each", async () => {
  const projectId = await newProject({ address: { country: "CA" } });
  await create("createFloorPlan", {
    projectId,
    title: "The Alder",
    code: "A1",
    bedrooms: 2,
    status: "ACTIVE",
  });
  await create("createFloorPlan", { projectId, title: "The Birch", bedrooms: 3, status: "ACTIVE" });
  await create("createLot", { projectId, number: "L-7" });
  const answer = await importing(
    { projectId },
    [
      "Unit #,Name,Floor Plan,Lot #,Status,List Price,HOA fee,Beds,Half baths,Sq. Ft.,Exposure,Street,City,Furnished,Construction,Delivery date,Agent",
      'A-101,"Garden, ""corner""",a1,l-7,Available,"$425,000.00",350.5,,1,"1,250",sw,1 King St,Toronto,yes,Rough-in,2027-05-31,Bo',
      "A-102,,the birch,,off market,,,4,,,,,,,,,",
      "A-103",
    ].join("\r\n"),
  );
  expect(counts(answer)).toEqual([3, 0, 0, 0]);
  expect(answer).toMatchObject({
    dryRun: false,
    errors: [],
    units: [
      {
        number: "A-101",
        title: 'Garden, "corner"',
        status: "AVAILABLE",
        price: "425000.00",
        bedrooms: 2,
        floorPlan: { title: "The Alder" },
        lot: { number: "L-7" },
      },
      {
        number: "A-102",
        title: "Unit A-102",
        status: "OFF_MARKET",
        price: null,
        bedrooms: 4,
        floorPlan: { title: "The Birch" },
        lot: null,
      },
      { number: "A-103", title: "Unit A-103", status: "UNRELEASED", floorPlan: null },
    ],
  });
  expect(await events(projectId)).toEqual(Array(3).fill(["unit.created", "IMPORT"]));
  const { unit } = await world.owen.get(
    `query ($id: ID!) { unit(id: $id) { hoaFee halfBaths sqft orientation isFurnished constructionStatus estimatedDeliveryDate
       listingDate originalListPrice currency daysOnMarket address { thoroughfare locality country } events { channel actor { id } } } }`,
    { id: answer.units[0].id },
  );
  expect(unit).toEqual({
    hoaFee: "350.50",
    halfBaths: 1,
    sqft: 1250,
    orientation: "SW",
    isFurnished: true,
    constructionStatus: "ROUGH_IN",
    estimatedDeliveryDate: "2027-05-31",
    listingDate: expect.any(String),
    originalListPrice: "425000.00",
    currency: "CAD",
    daysOnMarket: 0,
    address: { thoroughfare: "1 King St", locality: "Toronto", country: "CA" },
    events: [{ channel: "IMPORT", actor: { id: world.owen.id } }],
  });
});

test("accepts a byte order mark, semicolons, quoted fields with line breaks, and decimal commas", async () => {
  const projectId = await newProject();
  const answer = await importing(
    { projectId },
    '\ufeffNumber;Description;PRICE;HoaFee\r\n1;"two\r\nlines; and a semicolon";"425.000,50";12,5\r\n\r\n2;;1 250;\r\nx;;bad;\r\n',
  );
  expect(counts(answer)).toEqual([2, 0, 0, 1]);
  expect(answer.units.map((u: any) => [u.number, u.price])).toEqual([
    ["1", "425000.50"],
    ["2", "1250.00"],
  ]);
  // Rows are numbered as in spreadsheets, including blank ones.
  expect(answer.errors).toMatchObject([{ row: 5, column: "PRICE", code: "BAD_USER_INPUT", value: "bad" }]);
});

test("reports the errors of each invalid row, and imports the valid ones", async () => {
  const projectId = await newProject();
  const elsewhere = await newProject();
  await create("createFloorPlan", { projectId: elsewhere, title: "Elsewhere", code: "E" });
  await create("createFloorPlan", { projectId, title: "Twin" });
  await create("createFloorPlan", { projectId, title: "Twin" });
  const file = [
    "Unit #,Title,Status,Price,Beds,Level,Floor plan,Lot,Delivery,Model home,Orientation,Country,Sqft",
    "1,,,,,,,,,,,,",
    ",No number,,,,,,,,,,,",
    "3,,AVAILABLE,,,,,,,,,,",
    "4,,SOLD,100,,,,,,,,,",
    "5,,SOMEHOW,,,,,,,,,,",
    "6,,,-5,,,,,,,,,",
    "7,,,1.005,,,,,,,,,",
    "8,,,,100,,,,,,,,",
    "9,,,,two,,,,,,,,",
    "10,,,,,999,,,,,,,",
    "11,,,,,,E,,,,,,",
    "12,,,,,,Twin,,,,,,",
    "13,,,,,,,99,,,,,",
    "14,,,,,,,,31/05/2027,,,,",
    "15,,,,,,,,2027-02-30,,,,",
    "16,,,,,,,,,perhaps,,,",
    "17,,,,,,,,,,NNW,,",
    "18,,,,,,,,,,,Canada,",
    "19,,,,,,,,,,,,0,surplus",
    `20,${"x".repeat(301)},,,,,,,,,,,`,
    "1,again,,,,,,,,,,,",
    "=cmd(),=1+1,,,,,,,,,,,",
    "22,,,=cmd(),,,,,,,,,",
  ].join("\n");
  const answer = await importing({ projectId }, file);
  expect(counts(answer)).toEqual([2, 0, 0, 21]);
  // Formulas are stored as text.
  expect(answer.units.map((u: any) => [u.number, u.title])).toEqual([
    ["1", "Unit 1"],
    ["=cmd()", "=1+1"],
  ]);
  const bad = "BAD_USER_INPUT";
  expect(answer.errors.map((e: any) => [e.row, e.column, e.code])).toEqual([
    [3, "Unit #", bad],
    [4, "Price", bad],
    [5, "Status", "INVALID_TRANSITION"],
    [6, "Status", bad],
    [7, "Price", bad],
    [8, "Price", bad],
    [9, "Beds", bad],
    [10, "Beds", bad],
    [11, "Level", bad],
    [12, "Floor plan", "NOT_FOUND"],
    [13, "Floor plan", "CONFLICT"],
    [14, "Lot", "NOT_FOUND"],
    [15, "Delivery", bad],
    [16, "Delivery", bad],
    [17, "Model home", bad],
    [18, "Orientation", bad],
    [19, "Country", bad],
    [20, "Sqft", bad],
    [20, null, bad],
    [21, "Title", bad],
    [22, "Unit #", "CONFLICT"],
    [24, "Price", bad],
  ]);
  const message = (row: number) => answer.errors.find((e: any) => e.row === row).message;
  expect(message(4)).toBe("A unit that is for sale must have a price.");
  expect(message(6)).toMatch(/^Use one of AVAILABLE, CLOSED, /);
  expect(message(8)).toBe("CAD can have at most 2 decimal places.");
  expect(message(9)).toBe("Must be from 0 to 99 bedrooms.");
  expect(message(10)).toBe("Must be a whole number.");
  expect(message(15)).toBe("Must be a date such as 2027-05-31.");
  expect(message(22)).toBe("Row 2 already has this number.");
  expect(message(21)).toBe("Must have 1 to 300 characters.");
  expect(await numbers(projectId)).toEqual(["1", "=cmd()"]);
});

test("importing again changes nothing; with updateExisting, it updates what differs", async () => {
  const projectId = await newProject();
  const file = "Unit #,Price,Status,City\n1,100,AVAILABLE,Toronto\n2,200,AVAILABLE,\n3,,,\n";
  expect(counts(await importing({ projectId }, file))).toEqual([3, 0, 0, 0]);
  for (const updateExisting of [false, true])
    expect(counts(await importing({ projectId, updateExisting }, file))).toEqual([0, 0, 3, 0]);
  expect(await events(projectId)).toHaveLength(3);

  const changed = "Unit #,Price,Status,City\n1,110,,Ottawa\n2,,,\n3,300,AVAILABLE,\n4,400,AVAILABLE,\n";
  // Without updateExisting, existing units are unchanged.
  const kept = await importing({ projectId, dryRun: true }, changed);
  expect(counts(kept)).toEqual([1, 0, 3, 0]);
  const answer = await importing({ projectId, updateExisting: true }, changed);
  expect(counts(answer)).toEqual([1, 2, 1, 0]);
  expect(answer.units.map((u: any) => [u.number, u.price, u.status, u.version])).toEqual([
    ["1", "110.00", "AVAILABLE", 2],
    ["3", "300.00", "AVAILABLE", 2],
    ["4", "400.00", "AVAILABLE", 1],
  ]);
  expect(
    (await events(projectId))
      .slice(3)
      .map(([name]) => name)
      .toSorted(),
  ).toEqual(["unit.created", "unit.price_changed", "unit.price_changed"]);
});

test("an imported unit equals a created one in every column", async () => {
  const projectId = await newProject({ address: { country: "US" }, currency: "JPY" });
  const plan = await create("createFloorPlan", {
    projectId,
    title: "Plan",
    bedrooms: 2,
    sqft: 900,
    hoaFee: 30,
    orientation: "N",
  });
  const { units } = await importing(
    { projectId },
    [
      "number,status,price,floorPlan,baths,hoaFee,locality,constructionStatus,view",
      "1,AVAILABLE,100,Plan,2,,Oslo,COMPLETED,Lake",
      "2,UNRELEASED,,,,50,,,",
      "3,OFF_MARKET,7,Plan,,50,,FRAMING,",
    ].join("\n"),
  );
  const plain = { projectId, title: "Created" };
  const created = [
    await create("createUnit", {
      ...plain,
      ...{ status: "AVAILABLE", price: 100, floorPlanId: plan, baths: 2, view: "Lake" },
      ...{ address: { locality: "Oslo" }, constructionStatus: "COMPLETED" },
    }),
    await create("createUnit", { ...plain, hoaFee: 50 }),
    await create("createUnit", {
      ...plain,
      ...{ status: "OFF_MARKET", price: 7, floorPlanId: plan, hoaFee: 50, constructionStatus: "FRAMING" },
    }),
  ];
  const columns = async (ids: string[]) =>
    (
      await world.owner.query(
        `select to_jsonb(u) - '{id,number,title,inserted_at,updated_at,status_changed_at,market_since}'::text[]
           || jsonb_build_object('on_market', u.market_since = u.inserted_at, 'since', u.status_changed_at = u.inserted_at) as columns
         from app_public.units u where u.id = any ($1) order by u.id`,
        [ids],
      )
    ).rows.map((row) => row.columns);
  expect(await columns(units.map((u: any) => u.id))).toEqual(await columns(created));
});

test("updates follow the state machine and claims", async () => {
  const projectId = await newProject();
  await create("createLot", { projectId, number: "L1" });
  const { units } = await importing(
    { projectId },
    "number,price,status\n1,100,AVAILABLE\n2,100,AVAILABLE\n3,100,UNRELEASED\n4,100,AVAILABLE\n",
  );
  await world.owner.query("select app_private.take_claim($1, null, 'HOLD', 'hold', uuidv7())", [units[0].id]);
  const answer = await importing(
    { projectId, updateExisting: true },
    "number,price,status,lot\n1,120,,\n2,,OFF_MARKET,\n3,,HELD,\n4,,UNRELEASED,\n1,,AVAILABLE,\n",
  );
  expect(counts(answer)).toEqual([0, 2, 0, 3]);
  expect(answer.units.map((u: any) => [u.number, u.price, u.status])).toEqual([
    ["1", "120.00", "HELD"],
    ["2", "100.00", "OFF_MARKET"],
  ]);
  const claimed = await importing(
    { projectId, updateExisting: true },
    "number,status,lot\n1,AVAILABLE,\n2,,L1\n",
  );
  expect(claimed.errors).toMatchObject([{ row: 2, column: "status", code: "INVALID_TRANSITION" }]);
  const moved = await importing({ projectId, updateExisting: true }, "number,lot\n1,L1\n");
  expect(moved.errors).toMatchObject([{ row: 2, column: "lot", code: "CONFLICT" }]);
});

test("a dry run returns the results and stores nothing", async () => {
  const projectId = await newProject();
  const answer = await importing({ projectId, dryRun: true }, "number,price\n1,100\n2,x\n");
  expect(answer).toMatchObject({
    dryRun: true,
    units: [{ number: "1", price: "100.00" }],
    errors: [{ row: 3, column: "price" }],
  });
  expect(counts(answer)).toEqual([1, 0, 0, 1]);
  expect(await numbers(projectId)).toEqual([]);
  expect(await events(projectId)).toEqual([]);
});

test("does not lock rows that it does not change", async () => {
  const projectId = await newProject();
  await create("createFloorPlan", { projectId, title: "A", code: "A" });
  const other = await create("createFloorPlan", { projectId, title: "B", code: "B" });
  const { units } = await importing({ projectId }, "number,floorPlan,title\n1,A,One\n2,A,Two\n");
  const rows = (file: [string, string, string][]) =>
    JSON.stringify(file.map((cells, n) => [n + 2, null, ...cells]));
  const client = await world.owner.connect();
  try {
    // The import of a file that changes only the second unit, before its commit.
    await client.query("begin");
    await client.query(
      "select set_config('plat.user_id', $1, true), set_config('role', 'plat_user', true), app_hidden.begin_import('importUnits', $2, '{number,floorPlan,title}')",
      [world.owen.id, projectId],
    );
    await client.query("select app_hidden.add_import_rows('importUnits', '{number,floor_plan,title}', $1)", [
      rows([
        ["1", "A", "One"],
        ["2", "A", "Second"],
      ]),
    ]);
    const { rows: done } = await client.query(
      "select updated_count, skipped_count from app_public.import_units($1, '{}', false, true)",
      [projectId],
    );
    expect(done).toEqual([{ updated_count: 1, skipped_count: 1 }]);
    const { updateUnit } = await world.owen.get(
      `mutation ($id: ID!) { updateUnit(input: { id: $id, title: "Changed" }) { title } }`,
      { id: units[0].id },
    );
    expect(updateUnit.title).toBe("Changed");
    await world.owen.get(`mutation ($id: ID!) { updateFloorPlan(input: { id: $id, title: "B2" }) { id } }`, {
      id: other,
    });
  } finally {
    await client.query("rollback");
    client.release();
  }
});

test("refuses a file without the required columns, and one that is not CSV", async () => {
  const projectId = await newProject();
  for (const [file, expected] of [
    ["Title,Price\nA,1\n", { code: "BAD_USER_INPUT", field: "file", row: 1, columns: ["number"] }],
    ["\n\n", { code: "BAD_USER_INPUT", field: "file", columns: ["number"] }],
    ["", { code: "BAD_USER_INPUT", field: "file" }],
    ["Number,Price,List price\n1,2,3\n", { code: "BAD_USER_INPUT", columns: ["Price", "List price"] }],
    ['number,title\n1,a\n2,"no end\n3,b\n', { code: "BAD_USER_INPUT", field: "file", row: 3 }],
    ['number,title\n1,a\n2,"b"c\n', { code: "BAD_USER_INPUT", field: "file", row: 3 }],
    [`number\n"${"x".repeat(1_000_100)}"\n`, { code: "BAD_USER_INPUT", field: "file", row: 2 }],
    [Buffer.from("number,title\n1,a\n2,caf\xe9\n", "latin1"), { code: "UNSUPPORTED_FILE", row: 3 }],
    [Buffer.from("\ufeffnumber\n1\n", "utf16le"), { code: "UNSUPPORTED_FILE", row: 1 }],
    [Buffer.from("number\n1\0\n"), { code: "UNSUPPORTED_FILE" }],
    ["<table><tr><td>number</td></tr></table>", { code: "UNSUPPORTED_FILE" }],
    [`number\n${"1\n".repeat(200_001)}`, { code: "LIMIT_EXCEEDED", limit: 200_000 }],
  ] as [string | Buffer, Record<string, unknown>][])
    expect([String(file).slice(0, 40), await refused({ projectId }, file)]).toMatchObject([
      String(file).slice(0, 40),
      expected,
    ]);
  expect(await numbers(projectId)).toEqual([]);
});

test("a million blank lines take no noticeable work", async () => {
  const projectId = await newProject();
  for (const blank of ["\n", "  \r\n", ",,\n", ",\n"]) {
    const answer = await importing({ projectId }, `number,price,view\n${blank.repeat(1_000_000)}1,x,\n`);
    expect(answer.errors).toMatchObject([{ row: 1_000_002, column: "price" }]);
  }
}, 80_000);

test("returns the first 1,000 errors and units, and counts all", async () => {
  const projectId = await newProject();
  const rows = Array.from({ length: 3000 }, (_, i) => `${i},${i % 2 ? "x" : i}`);
  const answer = await importing({ projectId }, `number,price\n${rows.join("\n")}\n`);
  expect(counts(answer)).toEqual([1500, 0, 0, 1500]);
  expect(answer.errors).toHaveLength(1000);
  expect(answer.errors.at(-1).row).toBe(2001);
  expect(answer.units.map((u: any) => u.number)).toEqual(
    Array.from({ length: 1000 }, (_, i) => String(2 * i)),
  );
});

test("only owners and admins can import", async () => {
  const file = "number\n1\n";
  const projectId = world.project.id;
  await affiliate(world, world.project, world.summit, "SELLER");
  for (const [person, code, permission] of [
    [world.max, "FORBIDDEN", "inventory.manage"],
    [world.olga, "FORBIDDEN", "inventory.manage"],
    [world.anonymous, "UNAUTHENTICATED", undefined],
  ] as [Person, string, string | undefined][])
    expect(await refused({ projectId }, file, person)).toMatchObject({
      code,
      ...(permission ? { permission } : {}),
    });
  await world.owner.query("delete from app_public.project_organizations where organization_id = $1", [
    world.summit.id,
  ]);
  expect(await refused({ projectId }, file, world.olga)).toMatchObject({
    code: "NOT_FOUND",
    field: "projectId",
  });
  expect(await refused({ projectId: world.summit.id }, file)).toMatchObject({ code: "NOT_FOUND" });
  expect(await numbers(projectId)).toEqual([]);
  for (const person of [world.owen, world.ada]) {
    const { data } = await send({ projectId: world.project.slug, dryRun: true }, file, person);
    expect(counts(data.importUnits)).toEqual([1, 0, 0, 0]);
  }
  // Also as a data URI.
  const uri = `data:text/csv;base64,${Buffer.from(file).toString("base64")}`;
  expect(await world.anonymous.refused(document, { input: { projectId, file: uri } })).toMatchObject({
    code: "UNAUTHENTICATED",
  });
  const { importUnits } = await world.ada.get(document, { input: { projectId, file: uri } });
  expect(counts(importUnits)).toEqual([1, 0, 0, 0]);
});

test("refuses an archived project", async () => {
  const projectId = await newProject();
  await world.owen.get(
    `mutation ($id: ID!) { updateProject(input: { id: $id, status: "ARCHIVED" }) { id } }`.replace(
      '"ARCHIVED"',
      "ARCHIVED",
    ),
    { id: projectId },
  );
  expect(await refused({ projectId }, "number\n1\n")).toMatchObject({ code: "PROJECT_ARCHIVED" });
});

test("under one idempotency key it is executed once; another file is another request", async () => {
  const projectId = await newProject();
  const input = { projectId, idempotencyKey: `import ${projectId}` };
  const first = await importing(input, "number,price\n1,100\n2,x\n");
  expect(await importing(input, "number,price\n1,100\n2,x\n")).toEqual(first);
  expect(counts(first)).toEqual([1, 0, 0, 1]);
  expect(await refused(input, "number,price\n1,101\n2,x\n")).toMatchObject({ code: "IDEMPOTENCY_MISMATCH" });
  expect(await events(projectId)).toHaveLength(1);
});

test("two concurrent imports of the same file create each unit once", async () => {
  const projectId = await newProject();
  const file = `number\n${Array.from({ length: 500 }, (_, i) => i).join("\n")}\n`;
  const answers = await Promise.all([importing({ projectId }, file), importing({ projectId }, file)]);
  expect(answers.map(counts).toSorted()).toEqual([
    [0, 0, 500, 0],
    [500, 0, 0, 0],
  ]);
});

test("every spelling belongs to one column of an import", async () => {
  const { rows } = await world.owner.query(
    `select c.operation, app_private.spelling(s) as spelling, count(distinct c.column_name)::int from app_hidden.import_columns c, unnest(c.spellings || c.column_name) s
     group by 1, 2 having count(distinct c.column_name) > 1`,
  );
  expect(rows).toEqual([]);
});

test("leaves nothing behind in the database session or the folder of uploads", async () => {
  const { rows } = await world.owner.query(
    "select relname from pg_class where relname like 'import\\_%' and relpersistence = 't'",
  );
  expect(rows).toEqual([]);
  expect(await readdir(inFolder(world.dataDir, "incoming"))).toEqual([]);
});

test("reports all errors of a row at once, wherever they are detected", async () => {
  const projectId = await newProject();
  await importing({ projectId }, "Unit,Status,Price\n1,Available,400000");
  const answer = await importing(
    { projectId, updateExisting: true },
    [
      "Unit,Status,Price,HOA fee,Beds,Plan,Delivery",
      "2,Available,,10.001,two,Nowhere,tomorrow",
      "3,Sold,12.345,,100,,",
      "1,Sold,many,,,,2027-05-31",
      "4,Available,500000,,2,,",
    ].join("\n"),
  );
  const reported = answer.errors.map(({ row, column, code }: Record<string, unknown>) => [row, column, code]);
  expect(reported).toEqual([
    [2, "Beds", "BAD_USER_INPUT"],
    [2, "Delivery", "BAD_USER_INPUT"],
    [2, "HOA fee", "BAD_USER_INPUT"],
    [2, "Plan", "NOT_FOUND"],
    [2, "Price", "BAD_USER_INPUT"],
    [3, "Beds", "BAD_USER_INPUT"],
    [3, "Price", "BAD_USER_INPUT"],
    [3, "Status", "INVALID_TRANSITION"],
    [4, "Price", "BAD_USER_INPUT"],
    [4, "Status", "INVALID_TRANSITION"],
  ]);
  expect(counts(answer)).toEqual([1, 0, 0, 3]);
  expect(await numbers(projectId)).toEqual(["1", "4"]);
});

test("a dry run does not wait for other writes to the organization; an import only waits for the rows that it changes", async () => {
  const projectId = await newProject();
  await importing({ projectId }, "number,price\n1,100\n2,100\n");
  // A transaction that is committing: transactions that number their events must wait for it.
  const other = await world.owner.connect();
  try {
    await other.query("begin");
    await other.query(
      "update app_private.event_counters set last_sequence = last_sequence where stream_id = $1",
      [world.harbour.id],
    );
    const trial = await importing(
      { projectId, dryRun: true, updateExisting: true },
      "number,price\n1,200\n3,300\n",
    );
    expect(counts(trial)).toEqual([1, 1, 0, 0]);
  } finally {
    await other.query("rollback");
    other.release();
  }
  await importing({ projectId, updateExisting: true }, "number,price\n3,300\n1,200\n");
  expect((await events(projectId)).map(([name]) => name)).toEqual([
    "unit.created",
    "unit.created",
    "unit.price_changed",
    "unit.created",
  ]);
});
