import { createHash } from "node:crypto";
import { request } from "node:https";
import { buffer } from "node:stream/consumers";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { parse } from "content-disposition";
import readSheets from "read-excel-file/node";
import { extractText, getDocumentProxy } from "unpdf";
import { workbook } from "../../src/exports/workbook.ts";
import { createFileStore, type FileStore } from "../../src/providers/files/index.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";
import type { Person } from "../harness/api.ts";
import { createBuyer } from "../harness/deals.ts";
import { createLead, createProject, type Portfolio, startPortfolio } from "../harness/portfolio.ts";
import { createIn } from "../harness/records.ts";
import { startS3, type S3 } from "../harness/s3.ts";
import { picture } from "../harness/upload.ts";
import { join, programOf } from "../harness/world.ts";

// Exports: a file contains exactly what its requester may see, in every format, also after failures. Files
// are stored in an S3 store. Permissions: outsideMatrix.test.ts.

let s3: S3;
let folder: string;
let world: Portfolio;
let store: FileStore;
let outbox: Outbox;
let plans: string[];
let empty: { id: string };

beforeAll(async () => {
  folder = await mkdtemp(joinPath(tmpdir(), "plat-exports-"));
  s3 = await startS3(folder);
  world = await startPortfolio(undefined, { s3: s3.options });
  outbox = await createOutbox();
  store = createFileStore({ s3: s3.options, dataDir: world.dataDir });
  const { owen, project, owner } = world;
  const purchase = await createBuyer(owen, project);
  await owner.query("update app_public.buyers set dob = '1990-05-31' where id = $1", [purchase]);
  await createLead(owen, {
    projectId: project.id,
    name: '=HYPERLINK("http://x")',
    phone: "+1 416 555 0123",
    company: 'A "B", C\nD',
  });
  await owner.query("update app_public.leads set budget_min = 250000.50 where company is not null");
  const create = createIn(owen);
  plans = [
    await create("createFloorPlan", {
      projectId: project.id,
      title: "Łódź Terrace",
      code: "A1",
      basePrice: "450000.00",
      bedrooms: 3,
      sqft: 1420,
      description: "Bright corner.",
    }),
    await create("createFloorPlan", {
      projectId: project.id,
      title: "Birch",
      code: "B2",
      basePrice: "399000.00",
      bedrooms: 2,
    }),
  ];
  const drawing = `data:;base64,${(await picture("png", 400, 300)).toString("base64")}`;
  await create("uploadFloorPlanDrawing", { floorPlanId: plans[0], file: drawing });
  await create("uploadFloorPlanImage", {
    floorPlanId: plans[0],
    file: `data:;base64,${(await picture("webp", 300, 200)).toString("base64")}`,
  });
  empty = await createProject(owen, { organizationId: world.harbour.id, title: "Empty End" });
});
afterAll(async () => {
  await store.close();
  await outbox.remove();
  await world.stop();
  await s3.close();
  await rm(folder, { recursive: true, force: true });
});

const creation =
  "mutation ($input: CreateCustomExportInput!) { createCustomExport(input: $input) { id columns } }";
const input = (rest: Record<string, unknown> = {}) => ({
  input: {
    organizationId: world.harbour.id,
    name: "All our leads!",
    subject: "LEADS",
    format: "CSV",
    ...rest,
  },
});
const create = async (rest?: Record<string, unknown>): Promise<{ id: string; columns: string[] }> =>
  (await world.owen.get(creation, input(rest))).createCustomExport;
const running = "mutation ($id: ID!) { runCustomExport(input: { id: $id }) { id status progress url } }";
const start = async (id: string, person = world.owen): Promise<string> =>
  (await person.get(running, { id })).runCustomExport.id;
const reading = `query ($id: ID!) { export(id: $id) { subject format status filename filesize rowCount checksum progress url error startedAt completedAt expiresAt
  version requestedBy { id } customExport { name } organization { id } allowedTransitions { to } } }`;
const read = async (id: string, person = world.owen) => (await person.get(reading, { id })).export;
const work = (fileStore = store) => runJobs(world.database.ownerUrl, outbox.provider, fileStore);

/** Requests a URL of the API from this server, although the URL has another host in these tests. */
function download(
  address: string,
): Promise<{ status: number; type: string | undefined; disposition: string | undefined; body: Buffer }> {
  const { pathname, search } = new URL(address);
  return new Promise((resolve, reject) => {
    request(new URL(pathname + search, world.url), { rejectUnauthorized: false }, (response) => {
      const { "content-type": type, "content-disposition": disposition } = response.headers;
      buffer(response).then(
        (body) => resolve({ status: response.statusCode!, type, disposition, body }),
        reject,
      );
    })
      .on("error", reject)
      .end();
  });
}

/** Creates an export with these settings and returns its file. */
async function file(
  rest: Record<string, unknown>,
  person = world.owen,
): Promise<{ id: string; body: Buffer; type: string | undefined }> {
  const id = await start((await create(rest)).id, person);
  await work();
  const found = await read(id, person);
  if (found.status !== "COMPLETED") throw new Error(`${found.status}: ${found.error}`);
  const { body, type, disposition } = await download(found.url);
  expect(parse(disposition!)).toEqual({ type: "attachment", parameters: { filename: found.filename } });
  expect(body.length).toBe(found.filesize);
  expect(createHash("sha256").update(body).digest("hex")).toBe(found.checksum);
  return { id, body, type };
}

/** Cancels all waiting exports, so that the next test does not reach the limit. */
const clear = () =>
  world.owner.query(
    "begin; select set_config('plat.service', 'on', true); update app_public.exports set status = 'CANCELLED' where status in ('PENDING', 'PROCESSING'); commit",
  );

describe("the queue", () => {
  const place = async (id: string, person: Person) =>
    (await person.get("query ($id: ID!) { export(id: $id) { status queuePosition } }", { id })).export;
  /** Whether a worker that takes the job of an export begins it. */
  const begins = async (id: string): Promise<boolean> =>
    (await world.owner.query("select * from app_private.start_export($1, 'somebody')", [id])).rowCount === 1;
  const jobs = async (): Promise<string[]> =>
    (
      await world.owner.query(
        "select payload ->> 'id' as id from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id where t.identifier = 'export__requested' order by 1",
      )
    ).rows.map(({ id }) => id);

  test("the fourth export of a person waits, those of others do not, and people take turns", async () => {
    const { id } = await create();
    const ofAda: string[] = [];
    for (let n = 0; n < 6; n++) ofAda.push(await start(id, world.ada));
    for (const exported of ofAda.slice(0, 3)) expect(await begins(exported)).toBe(true);
    expect(await begins(ofAda[3]!)).toBe(false);
    expect(await place(ofAda[0]!, world.ada)).toEqual({ status: "PROCESSING", queuePosition: null });
    expect(await place(ofAda[3]!, world.ada)).toEqual({ status: "PENDING", queuePosition: 1 });
    expect(await place(ofAda[5]!, world.ada)).toEqual({ status: "PENDING", queuePosition: 3 });
    // The export of a person without a running one comes before her waiting ones, although it is later.
    const ofMax = await start(id, world.max);
    expect(await place(ofMax, world.max)).toEqual({ status: "PENDING", queuePosition: 1 });
    expect(await place(ofAda[3]!, world.owen)).toEqual({ status: "PENDING", queuePosition: 2 });
    expect(await begins(ofMax)).toBe(true);

    await world.owner.query("delete from graphile_worker._private_jobs");
    await world.ada.get("mutation ($id: ID!) { cancelExport(input: { id: $id }) { status } }", {
      id: ofAda[0],
    });
    expect(await jobs()).toEqual([ofAda[3]]);
    // A waiting export can be cancelled; the next one advances in the queue.
    await world.ada.get("mutation ($id: ID!) { cancelExport(input: { id: $id }) { status } }", {
      id: ofAda[4],
    });
    expect(await place(ofAda[5]!, world.ada)).toEqual({ status: "PENDING", queuePosition: 2 });
    expect(await begins(ofAda[3]!)).toBe(true);
    expect(await begins(ofAda[5]!)).toBe(false);
    expect(await place(ofAda[5]!, world.ada)).toMatchObject({ queuePosition: 1 });
    expect(
      (await world.max.get("query ($id: ID!) { export(id: $id) { id } }", { id: ofAda[5] })).export,
    ).toBe(null);
    await clear();
  });

  test("ten exports of an organization are written concurrently; those of another organization do not wait for them", async () => {
    const { id } = await create();
    const people = [world.owen, world.ada, world.max, await world.signUp("Ines"), await world.signUp("Jon")];
    await Promise.all(people.slice(3).map((person) => join(world, world.harbour.id, person, "MEMBER")));
    const requested: string[] = [];
    for (let n = 0; n < 3; n++) for (const person of people) requested.push(await start(id, person));
    const begun = [];
    for (const exported of requested) if (await begins(exported)) begun.push(exported);
    expect(begun).toEqual(requested.slice(0, 10));
    const { createCustomExport: foreign } = await world.olga.get(
      creation,
      input({ organizationId: world.summit.id }),
    );
    expect(await begins(await start(foreign.id, world.olga))).toBe(true);
    await clear();
  });

  test("all exports that were requested at once are completed", async () => {
    const { id } = await create();
    const requested = await Promise.all(Array.from({ length: 6 }, () => start(id, world.ada)));
    await work();
    expect(
      await Promise.all(requested.map(async (exported) => (await read(exported, world.ada)).status)),
    ).toEqual(Array(6).fill("COMPLETED"));
  });
});

describe("permissions", () => {
  test("only the requester gets the URL and finds the file", async () => {
    const { id } = await create();
    const exported = await start(id, world.max);
    const ofAda = await start(id, world.ada);
    await work();
    expect((await read(exported, world.max)).url).toMatch(/^https:/);
    expect(await read(exported, world.owen)).toMatchObject({
      status: "COMPLETED",
      url: null,
      requestedBy: { id: world.max.id },
    });
    const list =
      "query ($id: ID!) { organization(id: $id) { exports { id } customExports { id lastExport { id } exports { id } } } }";
    const { organization } = await world.max.get(list, world.harbour);
    expect(organization.exports).not.toContainEqual({ id: ofAda });
    expect(organization.customExports).toContainEqual({
      id,
      lastExport: { id: exported },
      exports: [{ id: exported }],
    });
  });

  test("a column that the requester may not see is refused, with the path", async () => {
    const { id } = await create({ subject: "BUYERS", columns: ["fullName", "dob"] });
    expect(await world.max.refused(running, { id })).toMatchObject({
      code: "FORBIDDEN",
      permission: "buyer.pii",
      field: "columns.1",
    });
    const left = await create({ subject: "BUYERS" });
    expect(left.columns).not.toContain("dob");
  });

  test("a completed export cannot be cancelled", async () => {
    const cancel = "mutation ($id: ID!) { cancelExport(input: { id: $id }) { status } }";
    const { id } = await create();
    expect(await world.max.get(cancel, { id: await start(id, world.max) })).toEqual({
      cancelExport: { status: "CANCELLED" },
    });
    const { id: done } = await file({});
    expect(await world.owen.refused(cancel, { id: done })).toMatchObject({
      code: "INVALID_TRANSITION",
      from: "COMPLETED",
    });
  });
});

describe("the file", () => {
  test("CSV: contains what its requester sees, without formulas, with a UTF-8 byte order mark", async () => {
    const columns = ["name", "phone", "company", "budgetMin", "status"];
    const { id, body, type } = await file({ columns, sort: [{ column: "name", direction: "DESC" }] });
    expect(type).toBe("text/csv; charset=utf-8");
    expect(body.toString()).toBe(
      [
        "\ufeffname,phone,company,budgetMin,status",
        "Sams Sally,,,,NEW",
        "Open Ollie,,,,NEW",
        "Mias Manny,,,,NEW",
        "Maxs Molly,,,,NEW",
        `"'=HYPERLINK(""http://x"")",'+14165550123,"A ""B"", C\nD",250000.50,NEW`,
        "",
      ].join("\r\n"),
    );
    const found = await read(id);
    expect(found).toMatchObject({
      status: "COMPLETED",
      rowCount: 5,
      progress: 1,
      error: null,
      customExport: { name: "All our leads!" },
      requestedBy: { id: world.owen.id },
      allowedTransitions: [],
    });
    expect(found.filename).toMatch(/^all-our-leads-\d{4}-\d\d-\d\d\.csv$/);
    // The requester is notified by mail.
    await world.owner.query("select app_private.fan_out_notifications(1000)");
    await world.owner.query("update graphile_worker._private_jobs set run_at = now()");
    await work();
    const mails = (await outbox.take()).filter(({ to }) => to?.[0]?.address === world.owen.email);
    expect(mails.map(({ text }) => text).join()).toContain(found.filename);
    const lone = await file({ columns: ["company"], filter: { name: "Open Ollie" } });
    expect(lone.body.toString()).toBe('\ufeffcompany\r\n""\r\n');
    const mine = await file({ columns: ["name"], filter: { status: ["NEW"] } }, world.max);
    expect(mine.body.toString().split("\r\n").sort()).toEqual([
      "",
      `"'=HYPERLINK(""http://x"")"`,
      "Maxs Molly",
      "Open Ollie",
      "Sams Sally",
      "\ufeffname",
    ]);

    const { rows } = await world.owner.query(
      "select name, data ->> 'requestedById' as by from app_public.events where subject_id = $1 order by sequence",
      [id],
    );
    expect(rows).toEqual(
      ["export.created", "export.status_changed", "export.completed"].map((name) => ({
        name,
        by: world.owen.id,
      })),
    );
    const subject = `query ($id: ID!) { eventsConnection(filter: { subjectId: $id }) { nodes { subject { __typename ... on Export { id } } } } }`;
    expect((await world.owen.get(subject, { id })).eventsConnection.nodes[2].subject).toEqual({
      __typename: "Export",
      id,
    });
  });

  test("JSONL: an object per line, with values as in the API", async () => {
    const { body } = await file({
      format: "JSONL",
      columns: ["name", "budgetMin", "isAgent", "tags", { column: "status", as: "Stage" }],
      filter: { company: { empty: false } },
    });
    expect(body.toString()).toBe(
      '{"name":"=HYPERLINK(\\"http://x\\")","budgetMin":"250000.50","isAgent":false,"tags":[],"Stage":"NEW"}\n',
    );
  });

  test("XLSX: texts, numbers and dates as cells of their type", async () => {
    const { body } = await file({
      format: "XLSX",
      columns: ["name", "budgetMin", "registeredAt"],
      filter: { company: { empty: false } },
    });
    const [{ sheet, data }] = (await readSheets(body)) as any;
    expect(sheet).toBe("Leads");
    expect(data).toEqual([
      ["name", "budgetMin", "registeredAt"],
      ['=HYPERLINK("http://x")', 250000.5, expect.any(Date)],
    ]);
  });

  test("PDF: a table", async () => {
    const { body, type } = await file({ format: "PDF", columns: ["name", "status", "budgetMin"] });
    expect(type).toBe("application/pdf");
    const { text, totalPages } = await extractText(await getDocumentProxy(new Uint8Array(body)), {
      mergePages: true,
    });
    expect(totalPages).toBe(1);
    expect(text).toMatch(/Name\s+Status\s+Budget min/);
    expect(text).toContain("Sams Sally");
    expect(text).toContain("250,000.50");
    // By default, there are as many columns as fit on a page.
    const [all, paper] = [await create(), await create({ format: "PDF" })];
    expect(all.columns.length).toBeGreaterThan(12);
    expect(paper.columns).toEqual(all.columns.slice(0, 12));
  });

  test("every character, in every format", async () => {
    const texts = {
      "Zażółć gęślą jaźń": 0,
      "Příliš žluťoučký kůň": 0,
      "Şişli, İğneada": '"Şişli, İğneada"',
      "Αθήνα Θεσσαλονίκη": 0,
      "Съешь ещё Київ": 0,
      "Nguyễn Thị Hằng": 0,
      "Home 東京 🏠👩‍👩‍👧 end": 0,
      "_x0041_ \u0001 <&>": 0,
      // Formulas are escaped after commas and semicolons.
      "-5": "'-5",
      "@SUM(1)": "'@SUM(1)",
      "＝1+1": "'＝1+1",
      "a;=1+1; b\n-2": `"a;'=1+1; b\n'-2"`,
    };
    await world.owner.query(
      `insert into app_public.tasks (organization_id, project_id, title, description)
       select $1, $2, 'Letters', t from unnest($3::text[]) t`,
      [world.harbour.id, world.project.id, Object.keys(texts)],
    );
    const written = async (format: string) =>
      (
        await file({
          format,
          subject: "TASKS",
          columns: ["description"],
          filter: { title: "Letters" },
          sort: ["id"],
        })
      ).body;
    expect((await written("CSV")).toString().split("\r\n")).toEqual([
      "\ufeffdescription",
      ...Object.entries(texts).map(([text, cell]) => cell || text),
      "",
    ]);
    const lines = (await written("JSONL")).toString().trim().split("\n");
    expect(lines.map((line) => JSON.parse(line).description)).toEqual(Object.keys(texts));
    const [{ data }] = (await readSheets(await written("XLSX"))) as any;
    expect(data.flat()).toEqual(["description", ...Object.keys(texts)]);
    const body = new Uint8Array(await written("PDF"));
    expect(body.length).toBeLessThan(60_000);
    const { text } = await extractText(await getDocumentProxy(body), { mergePages: true });
    for (const shown of Object.keys(texts).slice(0, 6)) expect(text).toContain(shown);
    // A replacement character for each one that the font lacks.
    expect(text).toContain("Home \ufffd\ufffd \ufffd\ufffd end");
  });

  test("a workbook respects the limits of a sheet, and adds sheets for further rows", async () => {
    const cells = {
      TEXT: "x".repeat(40_000),
      MONEY: "-12345678901.50",
      INTEGER: "12345678901234567",
      BOOLEAN: "true",
      DATE: "2026-03-01",
      DATETIME: "1850-03-01T02:00:00",
    };
    const columns = Object.keys(cells).map((type) => ({ name: type, type }));
    async function* batches() {
      for (let i = 0; i < 3; i += 1) yield [0, 1].map((n) => [`${i}${n}`, ...Object.values(cells)] as any);
    }
    let wrote = 0;
    const options = {
      title: "Rows",
      wrote: (rows: number) => (wrote += rows),
      most: { rows: 4, characters: 1e9 },
    };
    const sheets = (await readSheets(await buffer(workbook(columns, batches(), options)))) as any;
    expect(sheets.map((found: any) => [found.sheet, found.data.length])).toEqual([
      ["Rows 1", 5],
      ["Rows 2", 3],
    ]);
    expect(wrote).toBe(6);
    expect(sheets[1].data[2]).toEqual([
      `${"x".repeat(32_766)}…`,
      -12345678901.5,
      cells.INTEGER,
      true,
      new Date("2026-03-01T00:00:00Z"),
      cells.DATETIME,
    ]);
  });

  test("every subject, in every format, with every column, also without rows", async () => {
    // More at once than the limit allows, so they are created in SQL.
    const { rows } = await world.owner.query<{ id: string; subject: string }>(
      `with asked as (
         insert into app_public.exports (organization_id, subject, format, columns, filter, requested_by_id, filename)
         select $1, c.subject, f.format, case when f.format <> 'PDF' then c.names end, case when f.empty then '{"id": []}'::jsonb end, $2, lower(c.subject)
         from (select subject, jsonb_agg(name order by position) as names from app_hidden.report_columns group by subject) c,
           (select value as format, empty from app_public.export_format_values, unnest(array[true, false]) empty where value <> 'ZIP' and (not empty or value in ('CSV', 'XLSX'))) f (format, empty)
         where not f.empty or c.subject = 'LEADS'
         returning id, subject)
       , runs as (insert into app_private.export_runs (export_id) select id from asked)
       select id, subject from asked`,
      [world.harbour.id, world.owen.id],
    );
    expect(rows).toHaveLength(14 * 4 + 2);
    expect((await work()).filter((line) => line.startsWith("error"))).toEqual([]);
    const { rows: done } = await world.owner.query(
      `select subject, array_agg(distinct status::text) as statuses, count(distinct row_count) filter (where filter is null and subject <> 'EVENTS')::int as counts,
         array_agg(distinct error) filter (where error is not null) as errors
       from app_public.exports where id = any ($1) group by subject order by subject`,
      [rows.map(({ id }) => id)],
    );
    expect(done).toEqual(
      done.map(({ subject }) => ({
        subject,
        statuses: ["COMPLETED"],
        // Exports write events themselves.
        counts: subject === "EVENTS" ? 0 : 1,
        errors: null,
      })),
    );
    const { rows: none } = await world.owner.query(
      "select format, filesize from app_public.exports where id = any ($1) and filter is not null and row_count = 0 order by format",
      [rows.map(({ id }) => id)],
    );
    expect(none.map(({ format }) => format)).toEqual(["CSV", "XLSX"]);
    const { body } = await file({ format: "JSONL", filter: { id: [] } });
    expect(body.length).toBe(0);
  });

  test("a large file is uploaded to the store in parts", async () => {
    await world.owner.query(
      `insert into app_public.tasks (organization_id, project_id, title, description)
       select $1, $2, 'Large', repeat('x', 19999) || i % 10 from generate_series(1, 300) i`,
      [world.harbour.id, world.project.id],
    );
    s3.events.length = 0;
    const form = { format: "JSONL", subject: "TASKS", columns: ["description"], filter: { title: "Large" } };
    const { body } = await file(form);
    expect(body.toString().split("\n")).toHaveLength(301);
    expect(s3.events).toEqual(["ObjectCreated:Post"]);
    expect(await s3.unfinished()).toEqual([]);
  });

  test("PDF: a page for each floor plan, with its pictures", async () => {
    const exporting =
      "mutation ($input: ExportFloorPlansInput!) { exportFloorPlans(input: $input) { id format } }";
    const pages = async (rest: Record<string, unknown>) => {
      const { exportFloorPlans } = await world.max.get(exporting, {
        input: { projectId: world.project.slug, ...rest },
      });
      const open: number[] = [];
      await work({
        ...store,
        get: async (...args) => {
          const { rowCount } = await world.owner.query(
            "select from pg_stat_activity where datname = current_database() and state = 'idle in transaction'",
          );
          open.push(rowCount!);
          return store.get(...args);
        },
      });
      // No transaction stays open while pictures are fetched.
      expect(open.filter((amount) => amount > 0)).toEqual([]);
      const found = await read(exportFloorPlans.id, world.max);
      expect(found).toMatchObject({ status: "COMPLETED", format: "PDF" });
      const { body } = await download(found.url);
      const proxy = await getDocumentProxy(new Uint8Array(body));
      return {
        ...(await extractText(proxy)),
        pictures: body.toString("latin1").match(/\/Subtype \/Image/g)?.length ?? 0,
        filename: found.filename,
      };
    };
    const all = await pages({});
    expect(all.totalPages).toBe(2);
    expect(all.text[0]).toContain("Łódź Terrace (A1)");
    expect(all.text[0]).toContain("CAD 450,000.00");
    expect(all.text[0]).toContain("1420");
    expect(all.text[1]).toContain("Birch (B2)");
    expect(all.pictures).toBe(2);
    expect(all.filename).toMatch(/^harbour-view-floor-plans-.*\.pdf$/);
    expect(await pages({ floorPlanIds: [plans[1]] })).toMatchObject({ totalPages: 1, pictures: 0 });
    expect((await pages({ projectId: empty.id })).text[0]).toContain("There are no floor plans.");
    expect(
      await world.max.refused(exporting, { input: { projectId: empty.id, floorPlanIds: [plans[0]] } }),
    ).toMatchObject({ code: "NOT_FOUND", field: "floorPlanIds.0" });
  });

  test("contains what the token of the request allows, and is refused for tokens that allow less", async () => {
    const { id } = await create({ columns: ["name"] });
    const token = (scopes: string[]) => programOf(world, world.owen, { scopes });
    const narrow = await token(["report.*", "project.read"]);
    expect(await narrow.refused(running, { id })).toMatchObject({
      code: "FORBIDDEN",
      field: "subject",
      permission: "lead.read",
    });
    const wide = await token(["report.*", "lead.read"]);
    const exported = await start(id, wide);
    await work();
    expect((await read(exported, wide)).url).toMatch(/^https:/);
    expect((await read(exported, narrow)).url).toBeNull();
  });
});

describe("failures and lost access", () => {
  const demote = (person: Person, role: string) =>
    world.owner.query(
      "update app_public.organization_user_connections set role = $3 where user_id = $1 and organization_id = $2",
      [person.id, world.harbour.id, role],
    );

  test("a permission that is lost before, while or after the file is written", async () => {
    const amy = await world.signUp("Amy Admin");
    await join(world, world.harbour.id, amy, "ADMIN");
    const { id } = await create({ columns: ["name"] });
    const before = await start(id, amy);
    await world.owner.query("delete from app_public.organization_user_connections where user_id = $1", [
      amy.id,
    ]);
    await work();
    expect(await read(before)).toMatchObject({ status: "CANCELLED", rowCount: null });

    await join(world, world.harbour.id, amy, "ADMIN");
    const kept = await s3.keys();
    const meanwhile = await start(id, amy);
    await work({ ...store, put: async (...args) => (await demote(amy, "MEMBER"), store.put(...args)) });
    expect(await read(meanwhile)).toMatchObject({
      status: "CANCELLED",
      error: "Whoever asked for it may not see it any more.",
    });
    expect(await s3.keys()).toEqual(kept);

    await demote(amy, "ADMIN");
    const after = await start(id, amy);
    await work();
    expect((await read(after, amy)).url).toMatch(/^https:/);
    await demote(amy, "MEMBER");
    expect(await read(after, amy)).toMatchObject({ status: "COMPLETED", url: null });
  });

  test("can be deleted with its custom export while it runs", async () => {
    const { id } = await create({ columns: ["name"] });
    const exported = await start(id);
    await world.owen.get("mutation ($id: ID!) { deleteCustomExport(input: { id: $id }) { id } }", { id });
    await work();
    expect(await read(exported)).toMatchObject({ status: "COMPLETED", rowCount: 5, customExport: null });
  });

  test("cancelled while it is written: the file is not kept", async () => {
    const kept = await s3.keys();
    const id = await start((await create()).id);
    const cancel = () =>
      world.owen.get("mutation ($id: ID!) { cancelExport(input: { id: $id }) { status } }", { id });
    await work({ ...store, put: async (...args) => (await cancel(), store.put(...args)) });
    expect(await read(id)).toMatchObject({ status: "CANCELLED", url: null });
    expect(await s3.keys()).toEqual(kept);
  });

  test("of two concurrent jobs, one writes the file", async () => {
    const id = await start((await create({ columns: ["name"] })).id);
    await world.owner.query(
      "select app_private.add_job('export__requested', jsonb_build_object('id', $1::uuid))",
      [id],
    );
    let puts = 0;
    const slow: FileStore = {
      ...store,
      put: async (...args) => ((puts += 1), await work(), store.put(...args)),
    };
    await Promise.all([work(slow), work(slow)]);
    expect(puts).toBe(1);
    expect(await read(id)).toMatchObject({ status: "COMPLETED", rowCount: 5 });
    const { rows } = await world.owner.query(
      "select from app_public.events where subject_id = $1 and name = 'export.completed'",
      [id],
    );
    expect(rows).toHaveLength(1);
  });

  test("the export of a dead worker is restarted by another; the file of the first is removed", async () => {
    const kept = await s3.keys();
    const id = await start((await create({ columns: ["name"] })).id);
    await world.owner.query("update graphile_worker._private_jobs set run_at = 'infinity'");
    // The state that the first worker left: running, with a file in the store.
    const { rows } = await world.owner.query("select worker from app_private.start_export($1, null)", [id]);
    await world.owner.query("select app_private.keep_export_file($1, $2, 'abandoned')", [id, rows[0].worker]);
    await store.put("abandoned", { path: import.meta.filename }, { size: 1, type: "text/csv" });
    await world.owner.query(
      "update app_private.export_runs set lease_until = now() - interval '6 minutes' where export_id = $1",
      [id],
    );
    expect(await read(id)).toMatchObject({ status: "PROCESSING", progress: 0 });
    // The sweep detects that no worker processes it.
    await world.owner.query("select app_private.add_job('exports__sweep')");
    await work();
    expect(await read(id)).toMatchObject({ status: "COMPLETED", rowCount: 5 });
    // The first worker, if it were still alive, can no longer complete or fail it.
    const late = await world.owner.query("select app_private.finish_export($1, $2, 1, 1, 'x') as done", [
      id,
      rows[0].worker,
    ]);
    expect(late.rows[0].done).toBe(false);
    expect(await s3.keys()).toHaveLength(kept.length + 1);
  });

  test("an error of the store is retried a few times", async () => {
    const id = await start((await create()).id);
    const broken: FileStore = { ...store, put: () => Promise.reject(new Error("no room")) };
    const again = () =>
      world.owner.query("update graphile_worker._private_jobs set run_at = now() where run_at <> 'infinity'");
    for (let i = 0; i < 5; i += 1) {
      expect((await work(broken)).join()).toContain("no room");
      expect(await read(id)).toMatchObject({ status: "PROCESSING" });
      await again();
    }
    await work(broken);
    expect(await read(id)).toMatchObject({ status: "FAILED", error: "The export broke off several times." });
  });

  test("expires after a week, and its file is deleted", async () => {
    const { id } = await file({});
    const { url } = await read(id);
    const before = await s3.keys();
    await world.owner.query(
      "begin; select set_config('plat.service', 'on', true); update app_public.exports set expires_at = now() where id = $1::uuid; commit".replace(
        "$1",
        `'${id}'`,
      ),
    );
    expect(await read(id)).toMatchObject({ status: "EXPIRED", url: null, rowCount: 5 });
    await work();
    expect(await s3.keys()).toHaveLength(before.length - 1);
    expect((await download(url)).status).toBe(404);
  });
});

describe("invalid requests", () => {
  test.each<[Record<string, unknown>, string]>([
    [{ columns: ["secret"] }, "columns.0"],
    [{ columns: [{ aggregate: "COUNT" }] }, "columns"],
    [{ columns: ["name", { column: "email", as: "name" }] }, "columns.1"],
    [{ filter: "status = 'NEW'" }, "filter"],
    [{ filter: { status: ["GONE"] } }, "filter.status.0"],
    [{ sort: "name" }, "sort"],
    [{ sort: ["nothing"] }, "sort.0"],
    [{ sort: [{ column: "name", direction: "UP" }] }, "sort.0.direction"],
    [{ sort: ["metadata"] }, "sort.0"],
    [
      {
        format: "PDF",
        columns: [
          "id",
          "name",
          "email",
          "phone",
          "status",
          "source",
          "origin",
          "company",
          "tags",
          "lostAt",
          "city",
          "country",
          "isAgent",
        ],
      },
      "columns",
    ],
  ])("%j is refused at %s", async (rest, field) => {
    expect(await world.owen.refused(creation, input(rest))).toMatchObject({ code: "BAD_USER_INPUT", field });
  });

  test("too many rows for the format, when it is requested and when it is written", async () => {
    const most = (rows: number) =>
      world.owner.query(
        `create or replace function app_hidden.most_rows_of_export(subject text, format text) returns int
         language sql immutable as $$ select case when format = 'PDF' then ${rows} end $$`,
      );
    const { id } = await create({ format: "PDF", columns: ["name"] });
    const exported = await start(id);
    await most(1);
    await work();
    expect(await read(exported)).toMatchObject({ status: "FAILED", error: expect.stringContaining("1 row") });
    const refusal = { code: "LIMIT_EXCEEDED", field: "format", limit: 1 };
    expect(await world.owen.refused(running, { id })).toMatchObject(refusal);
    const exporting = "mutation ($id: ID!) { exportFloorPlans(input: { projectId: $id }) { id } }";
    expect(await world.owen.refused(exporting, world.project)).toMatchObject(refusal);
    expect((await world.owen.ask(exporting, empty)).errors).toBeUndefined();
    await most(5000);
    await clear();
  });

  test("too many waiting exports", async () => {
    const { id } = await create();
    await world.owner.query(
      `insert into app_public.exports (organization_id, subject, format, requested_by_id, filename)
         select $1, 'LEADS', 'CSV', $2, 'x.csv' from generate_series(1, 30)`,
      [world.harbour.id, world.ada.id],
    );
    expect(await world.ada.refused(running, { id })).toMatchObject({
      code: "RATE_LIMITED",
      retryAfterSeconds: 15,
      key: "exportsOfYoursAndOfThe",
    });
    expect((await world.owen.ask(running, { id })).errors).toBeUndefined();
    await world.owner.query("delete from app_public.exports where filename = 'x.csv'");
    await clear();
  });

  test("an unknown record, and a lost update", async () => {
    const { id } = await create();
    expect(await world.owen.refused(running, { id: world.project.id })).toMatchObject({ code: "NOT_FOUND" });
    // A public project is visible to everybody, but others cannot export it.
    const foreign = await world.olga.ask(
      creation,
      input({ organizationId: world.summit.id, projectId: world.park.id }),
    );
    expect(foreign.errors).toEqual([
      expect.objectContaining({
        message: "The referenced record does not exist, or cannot be used here.",
        extensions: expect.objectContaining({ code: "BAD_USER_INPUT", field: "projectId" }),
      }),
    ]);
    const update =
      "mutation ($input: UpdateCustomExportInput!) { updateCustomExport(input: $input) { version } }";
    expect(await world.owen.refused(update, { input: { id, name: "A", expectedVersion: 4 } })).toMatchObject({
      code: "VERSION_MISMATCH",
    });
    expect(await world.owen.refused(update, { input: { id, sort: ["nothing"] } })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "sort.0",
    });
    const formats = "mutation ($input: ExportFloorPlansInput!) { exportFloorPlans(input: $input) { id } }";
    expect(
      await world.owen.refused(formats, { input: { projectId: world.project.id, format: "DOCX" } }),
    ).toMatchObject({ code: "BAD_USER_INPUT" });
  });
});

describe("the results of a report", () => {
  const REPORT = "mutation ($input: CreateCustomReportInput!) { createCustomReport(input: $input) { id } }";
  const EXPORT =
    "mutation ($id: ID!, $format: ExportFormat) { exportCustomReport(input: { id: $id, format: $format }) { id subject groupBy customReport { id } } }";
  const report = async (rest: Record<string, unknown>) =>
    (
      await world.owen.get(REPORT, {
        input: {
          organizationId: world.harbour.id,
          name: "Sources",
          subject: "LEADS",
          visibility: "ORGANIZATION",
          ...rest,
        },
      })
    ).createCustomReport.id as string;
  const exported = async (id: string, format: string | null, person = world.owen) => {
    const made = (await person.get(EXPORT, { id, format })).exportCustomReport;
    await work();
    const found = await read(made.id, person);
    if (found.status !== "COMPLETED") throw new Error(`${found.status}: ${found.error}`);
    return { ...found, ...made, body: (await download(found.url)).body };
  };
  const shown = async (id: string, person = world.owen) =>
    (await person.get("query ($id: ID!) { customReport(id: $id) { rows } }", { id })).customReport.rows.rows;
  const lines = (body: Buffer) =>
    body
      .toString()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));

  test("the file has the results of the report, in every format", async () => {
    await clear();
    const id = await report({
      groupBy: ["project", "status"],
      columns: [{ aggregate: "COUNT" }, { column: "budgetMin", aggregate: "MAX", as: "=top" }],
    });
    const figures = await shown(id);
    const jsonl = await exported(id, "JSONL");
    expect(jsonl).toMatchObject({
      subject: "LEADS",
      groupBy: ["project", "status"],
      customReport: { id },
      rowCount: figures.length,
      progress: 1,
    });
    expect(lines(jsonl.body)).toEqual(figures);
    const csv = await exported(id, null);
    expect(csv.filename).toMatch(/^sources-.*\.csv$/);
    expect(csv.body.toString().split("\r\n")[0]).toBe("\uFEFFproject,status,count,'=top");
    expect(csv.body.toString().trim().split("\r\n")).toHaveLength(figures.length + 1);
    const [sheet] = await readSheets((await exported(id, "XLSX")).body);
    expect(sheet!.data).toHaveLength(figures.length + 1);
    const paper = await extractText(
      await getDocumentProxy(new Uint8Array((await exported(id, "PDF")).body)),
      {
        mergePages: true,
      },
    );
    expect(paper.text).toContain(figures[0].project);
  });

  test("a single number, rows, and floor plans as PDF", async () => {
    await clear();
    const total = await report({ columns: [{ aggregate: "COUNT" }] });
    expect(lines((await exported(total, "JSONL")).body)).toEqual(await shown(total));
    const rows = await report({ columns: ["name", { column: "email", as: "mail" }] });
    expect(lines((await exported(rows, "JSONL")).body)).toEqual(await shown(rows));
    const onPlans = await report({ subject: "FLOOR_PLANS", groupBy: ["bedrooms"] });
    const { body } = await exported(onPlans, "PDF");
    const paper = await extractText(await getDocumentProxy(new Uint8Array(body)), { mergePages: true });
    expect(paper.text).toContain("Bedrooms");
    expect(paper.text).not.toContain("Birch");
  });

  test("requires read access to the report", async () => {
    await clear();
    const id = await report({ groupBy: ["project"] });
    for (const person of [world.owen, world.ada, world.max])
      expect(lines((await exported(id, "JSONL", person)).body)).toEqual(await shown(id, person));
    expect(await shown(id, world.max)).not.toEqual(await shown(id, world.owen));
    const ofOwen = await report({ visibility: "PRIVATE" });
    expect(await world.ada.refused(EXPORT, { id: ofOwen })).toMatchObject({ code: "NOT_FOUND", field: "id" });
    expect(await world.olga.refused(EXPORT, { id })).toMatchObject({ code: "NOT_FOUND", field: "id" });
    expect(await world.anonymous.refused(EXPORT, { id })).toMatchObject({ code: "UNAUTHENTICATED" });
    const scoped = (scopes: string[]) =>
      programOf(world, world.owen, { scopes, organizationId: world.harbour.id });
    expect(await (await scoped(["report.read", "lead.read"])).refused(EXPORT, { id })).toMatchObject({
      code: "FORBIDDEN",
    });
    expect(await (await scoped(["report.read", "report.run"])).refused(EXPORT, { id })).toMatchObject({
      code: "FORBIDDEN",
      permission: "lead.read",
    });
    const deposits = await report({ subject: "CHARGES", groupBy: ["status"] });
    expect(await world.max.refused(EXPORT, { id: deposits })).toMatchObject({ code: "FORBIDDEN" });
    // Only the requester gets the file; others see that the export exists.
    const mine = await exported(id, "CSV", world.max);
    expect((await read(mine.id, world.owen)).url).toBeNull();
  });

  test("commission reports cannot be exported, because commissions are not stored yet", async () => {
    const refusal = {
      code: "BAD_USER_INPUT",
      field: "kind",
      message: expect.stringMatching(/not supported/),
    };
    const agents = {
      organizationId: world.harbour.id,
      name: "Agents",
      subject: "BUYERS",
      kind: "COMMISSION",
    };
    expect(await world.owen.refused(REPORT, { input: agents })).toMatchObject(refusal);
    const id = await report({ subject: "BUYERS", kind: "SALES" });
    const CHANGE =
      "mutation ($id: ID!, $kind: ReportKind) { updateCustomReport(input: { id: $id, kind: $kind }) { kind } }";
    expect(await world.owen.refused(CHANGE, { id, kind: "COMMISSION" })).toMatchObject(refusal);
    // An older report of this kind is refused with the reason, and works after a change of its kind.
    const client = await world.owner.connect();
    await client.query(
      `begin; set local session_replication_role = replica; update app_public.custom_reports set kind = 'COMMISSION' where id = '${id}'; commit`,
    );
    client.release();
    const ROWS = "query ($id: ID!) { customReport(id: $id) { kind rows } }";
    expect(await world.owen.refused(ROWS, { id })).toMatchObject(refusal);
    expect(await world.owen.refused(EXPORT, { id })).toMatchObject(refusal);
    await world.owen.get(CHANGE, { id, kind: "CUSTOM" });
    expect((await world.owen.get(ROWS, { id })).customReport.kind).toBe("CUSTOM");
    const { __type: type } = await world.owen.get(
      `{ __type(name: "ReportKind") { enumValues { name description } } }`,
    );
    expect(type.enumValues.find(({ name }: any) => name === "COMMISSION").description).toMatch(
      /^Not available yet/,
    );
    const { allowed } = await world.owen.refused(CHANGE, { id, kind: "NONE" });
    const offered = type.enumValues
      .map(({ name }: any) => name)
      .filter((name: string) => name !== "COMMISSION");
    expect(allowed).toEqual(offered);
  });

  test("can be declared as not available only for values of the enumeration", async () => {
    const declared = world.owner.query(
      `select app_private.describe_enum('chart_type', 'Visualization of a report.',
         (select array_agg(array[value, description]) from app_public.chart_type_values), array['MAP'])`,
    );
    await expect(declared).rejects.toThrow("describe_enum declares {MAP} as not available");
  });
});
