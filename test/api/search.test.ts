/** search: its results, their order, their visibility, and refusals. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { createBuyer, invite } from "../harness/deals.ts";
import { explain } from "../harness/explain.ts";
import { readMatrix } from "../harness/matrix.ts";
import { startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { type Create, createIn, mutationOf } from "../harness/records.ts";
import { affiliate, programOf } from "../harness/world.ts";
import { picture, upload } from "../harness/upload.ts";

let world: Portfolio;
let create: Create;
let people: Record<string, Person>;

interface Result {
  id: string;
  type: string;
  title: string;
  score: number;
  [field: string]: any;
}
const document = `query ($query: String!, $types: [SearchResultType!], $projectId: ID, $first: Int) {
  search(query: $query, types: $types, projectId: $projectId, first: $first) { id type title score }
}`;
const search = async (
  query: string,
  person: Person = world.owen,
  more: Record<string, unknown> = {},
): Promise<Result[]> => (await person.get(document, { query, ...more })).search;
const titles = async (query: string, person?: Person, more?: Record<string, unknown>): Promise<string[]> =>
  (await search(query, person, more)).map((result) => result.title);

beforeAll(async () => {
  world = await startPortfolio();
  const { owen, max, sam, bob, mia, olga, project, park, quiet, peak, owner } = world;
  create = createIn(owen);
  const [bea, lena, gus] = (await Promise.all(
    ["Bea Buyer", "Lena Lender", "Gus Guest"].map(world.signUp),
  )) as [Person, Person, Person];
  const bank = (await lena.get(`mutation { createOrganization(input: { name: "Lender Bank" }) { id } }`))
    .createOrganization;
  await affiliate(world, project, bank, "LENDER");
  people = { owen, max, mia, sam, bob, lena, olga, bea, gus, anonymous: world.anonymous };

  // A word in every record, visible or not.
  const lead = (name: string, projectId: string, more: Record<string, unknown> = {}) =>
    create("createLead", { projectId, name, ...more });
  const agent = { name: "Zephyr Agent", email: "agent@broker.example", brokerage: "Best Brokers" };
  await lead("Zephyr Open", project.id, { agent });
  await create(
    "createLead",
    { projectId: project.id, name: "Zephyr Sams", agent: { name: "Zephyr Sams Agent" } },
    sam,
  );
  await lead("Zephyr Maxs", quiet.id, { assigneeId: max.id });
  await lead("Zephyr Mias", quiet.id, { assigneeId: mia.id });
  await create(
    "createLead",
    { projectId: peak.id, name: "Zephyr Foreign", agent: { name: "Zephyr Peak Agent" } },
    olga,
  );
  for (const where of [project, park]) {
    const of = where === park ? "Park" : "Harbour";
    const unit = { projectId: where.id, price: "500000", number: `${of[0]}-1203` };
    await create("createUnit", { ...unit, title: `Zephyr ${of} Unit`, status: "AVAILABLE", mlsId: "X77120" });
    await create("createUnit", { ...unit, title: `Zephyr ${of} Unreleased`, number: `${of[0]}-9` });
    await create("createFloorPlan", { projectId: where.id, title: `Zephyr ${of} Plan`, status: "ACTIVE" });
    await create("createFloorPlan", { projectId: where.id, title: `Zephyr ${of} Draft` });
  }
  const bought = await create("createUnit", {
    projectId: quiet.id,
    title: "Zephyr Bought",
    status: "AVAILABLE",
    price: "1",
  });
  await create("createUnit", {
    projectId: quiet.id,
    title: "Zephyr Beside",
    status: "AVAILABLE",
    price: "1",
  });
  const purchase = await createBuyer(owen, quiet, {
    unitId: bought,
    legalName: "Zephyr Buyer",
    email: "bea@home.example",
  });
  await createBuyer(owen, quiet, { legalName: "Zephyr Max Buyer", assigneeId: max.id });
  await createBuyer(sam, project, { legalName: "Zephyr Sam Buyer" });
  await createBuyer(owen, project, { legalName: "Zephyr Other Buyer" });
  await invite(world, purchase, bea);
  await owner.query("update app_public.units set original_list_price = 777123, sold_price = 888123");
});
afterAll(() => world.stop());

describe("visibility", () => {
  const matrix = `
                | owen | max | mia | sam | bob | lena | olga | bea | gus | anonymous
LEAD            | 4    | 3   | 3   | 1   | –   | –    | 1    | –   | –   | –
BUYER           | 4    | 3   | 2   | 1   | –   | –    | –    | 1   | –   | –
BUYER_AGENT     | 2    | 2   | 2   | 1   | –   | –    | 1    | –   | –   | –
UNIT            | 6    | 6   | 6   | 3   | 3   | 2    | 1    | 2   | 1   | 1
FLOOR_PLAN      | 4    | 4   | 4   | 3   | 3   | 2    | 1    | 1   | 1   | 1
`;
  const { names, rows } = readMatrix(matrix);
  test.each(rows)("$operation", async ({ operation: type, expected }) => {
    const cells: Record<string, string> = {};
    for (const name of names) {
      const found = await search("zephyr", people[name]!, { types: [type] });
      expect(new Set(found.map((result) => result.type)).size).toBeLessThanOrEqual(1);
      // The result is the same for a prefix, a word with a typo, and among all types.
      for (const query of ["zeph", "zepyr"])
        expect([name, query, (await search(query, people[name]!, { types: [type] })).length]).toEqual([
          name,
          query,
          found.length,
        ]);
      cells[name] = String(found.length || "–");
    }
    expect(cells).toEqual(expected);
  });

  test("projects: the portfolio, public ones, the one of a purchase", async () => {
    const seen = async (person: Person) =>
      (await titles("qu pa ha su".split(" ")[0]!, person, { types: ["PROJECT"] }))[0];
    expect(await seen(world.owen)).toBe("Quiet Quay");
    expect(await seen(people.bea!)).toBe("Quiet Quay");
    for (const name of ["sam", "olga", "gus", "anonymous"]) expect(await seen(people[name]!)).toBeUndefined();
    for (const person of Object.values(people))
      expect(await titles("public park", person)).toContain("Public Park");
    for (const name of ["owen", "sam", "bob", "lena"])
      expect(await titles("harbour view", people[name]!)).toContain("Harbour View");
    for (const name of ["olga", "bea", "anonymous"])
      expect(await titles("harbour view", people[name]!)).toEqual([]);
  });

  test("one project: by id or slug, with its visible records", async () => {
    const count = async (person: Person, projectId: string) =>
      (await search("zephyr", person, { projectId })).map((result) => result.type).sort();
    expect(await count(world.owen, world.project.slug)).toEqual([
      "BUYER",
      "BUYER",
      "BUYER_AGENT",
      "BUYER_AGENT",
      "FLOOR_PLAN",
      "FLOOR_PLAN",
      "LEAD",
      "LEAD",
      "UNIT",
      "UNIT",
    ]);
    expect(await count(world.sam, world.project.id)).toEqual([
      "BUYER",
      "BUYER_AGENT",
      "FLOOR_PLAN",
      "FLOOR_PLAN",
      "LEAD",
      "UNIT",
      "UNIT",
    ]);
    expect(await count(people.lena!, world.project.id)).toEqual(["FLOOR_PLAN", "UNIT"]);
    expect(await count(people.bea!, world.quiet.id)).toEqual(["BUYER", "UNIT"]);
    expect(await count(world.max, world.quiet.id)).toEqual(["BUYER", "LEAD", "UNIT", "UNIT"]);
    expect(await count(world.anonymous, world.park.id)).toEqual(["FLOOR_PLAN", "UNIT"]);
    for (const person of [world.olga, world.anonymous])
      expect(await count(person, world.project.id)).toEqual([]);
    expect(await count(world.owen, "no-such-project")).toEqual([]);
    // An unlisted project can be searched by its slug, but is not found by its words.
    const set = (visibility: string) =>
      world.owen.get(`mutation ($input: UpdateProjectInput!) { updateProject(input: $input) { id } }`, {
        input: { id: world.project.id, visibility },
      });
    await set("UNLISTED");
    expect(await count(world.anonymous, world.project.id)).toEqual(["FLOOR_PLAN", "UNIT"]);
    expect(await search("zephyr harbour", world.anonymous)).toEqual([]);
    await set("PUBLIC");
    expect(await titles("zephyr harbour", world.anonymous)).toEqual([
      "Zephyr Harbour Plan",
      "Zephyr Harbour Unit",
    ]);
    await set("PRIVATE");
    expect(await search("zephyr harbour", world.anonymous)).toEqual([]);
  });

  test("hidden fields are not searched", async () => {
    for (const query of [
      "777123",
      "888123",
      "500000",
      "agent@broker.example",
      "bea@home.example",
      "open@example.com",
    ]) {
      for (const name of ["gus", "anonymous", "olga", "lena"])
        expect([query, name, await titles(query, people[name]!)]).toEqual([query, name, []]);
    }
    for (const query of ["777123", "888123", "500000"]) expect(await titles(query)).toEqual([]);
    expect(await titles("bea@home.example", people.bea!)).toEqual(["Zephyr Buyer"]);
    expect(await titles("agent@broker.example")).toEqual(["Zephyr Agent"]);
  });

  test("an access token finds records within its scopes", async () => {
    const program = await programOf(world, world.owen, { scopes: ["inventory.read", "project.read"] });
    const found = await search("zephyr", program);
    expect(new Set(found.map((result) => result.type))).toEqual(new Set(["UNIT", "FLOOR_PLAN"]));
    expect(found).toHaveLength(10);
  });
});

describe("matches", () => {
  beforeAll(async () => {
    const { project, park } = world;
    for (const [name, more] of [
      [
        "Jonathan Smith",
        { email: "jon.smith77@mail.example", phone: "+14165550123", company: "Acme & Söhne" },
      ],
      ["John Smith", { email: "john@smith.example", phone: "+442079460958" }],
      ["Smith John Holding", {}],
      ["José Núñez-García", { phone: "+4989123456" }],
      ["Мария Иванова", {}],
      ["שרה כהן", {}],
      ["王小明", {}],
      ["田中さくら", {}],
      ["김철수", {}],
      ["Brontë O'Neill", { company: "100%_sure" }],
    ] as const)
      await create("createLead", { projectId: project.id, name, ...more });
    await create("createUnit", {
      projectId: park.id,
      title: "Penthouse",
      number: "PH-3",
      status: "AVAILABLE",
      price: "9",
    });
    await create("createUnit", {
      projectId: park.id,
      title: "Suite A1507",
      number: "A1507",
      status: "AVAILABLE",
      price: "9",
    });
  });

  test.each<[what: string, query: string, expected: string[]]>([
    ["whole words, in any order, the closest first", "john smith", ["John Smith", "Smith John Holding"]],
    ["the beginning of a word", "jonat", ["Jonathan Smith"]],
    ["beginnings across fields", "smi acm", ["Jonathan Smith"]],
    ["words of several fields", "jonathan mail", ["Jonathan Smith"]],
    ["no accents in the query", "jose nunez garcia", ["José Núñez-García"]],
    ["accents in the query", "JÖNATHAN söhne", ["Jonathan Smith"]],
    ["a letter wrong", "jonathen", ["Jonathan Smith"]],
    ["two letters exchanged", "jonahtan", ["Jonathan Smith"]],
    ["a letter missing, beside a word begun", "jnathan smi", ["Jonathan Smith"]],
    ["a letter too many", "brontte", ["Brontë O'Neill"]],
    ["an email address", "JON.SMITH77@mail.example", ["Jonathan Smith"]],
    ["digits of a phone number", "555 0123", ["Jonathan Smith"]],
    ["digits in one piece", "4165550", ["Jonathan Smith"]],
    ["a phone number as it is written", "(416) 555-0123", ["Jonathan Smith"]],
    ["a national number", "020 7946 0958", ["John Smith"]],
    ["an international number", "+49 89 123456", ["José Núñez-García"]],
    ["a number of zeros", "0000000", []],
    ["digits that come twice", "+1 416 555 5550", []],
    ["a unit by its number", "a1507", ["Suite A1507"]],
    ["without its letter", "1507", ["Suite A1507"]],
    ["its number with another separator", "PH 3", ["Penthouse"]],
    ["and with none", "ph3", ["Penthouse"]],
    ["a number of the multiple listing service", "x77120", ["Zephyr Harbour Unit", "Zephyr Park Unit"]],
    ["an apostrophe", "o'neill", ["Brontë O'Neill"]],
    ["wildcards are no wildcards", "100%_s", ["Brontë O'Neill"]],
    ["Cyrillic letters, in capitals", "МАРИЯ", ["Мария Иванова"]],
    ["from right to left", "כהן", ["שרה כהן"]],
    ["ideographs", "王小", ["王小明"]],
    ["a given name without the family name", "小明", ["王小明"]],
    ["a name in a script without spaces, with a space", "田中 さくら", ["田中さくら"]],
    ["syllables", "철수", ["김철수"]],
    ["SQL", "'; drop table leads; --", []],
    ["quotes and backslashes", `"smith\\" 'john`, ["John Smith", "Smith John Holding"]],
    ["a picture", "🏠", []],
    ["all words, not some", "jonathan nobody", []],
    ["nothing like it", "qqqqqqq", []],
    ["200 letters", "x".repeat(200), []],
  ])("%s", async (_, query, expected) => {
    expect((await titles(query)).sort()).toEqual([...expected].sort());
  });

  test("best first, in a stable order, and a smaller page is its beginning", async () => {
    expect(await titles("john smith")).toEqual(["John Smith", "Smith John Holding"]);
    const all = await search("smi");
    expect(all.map((result) => result.score)).toEqual(
      all.map((result) => result.score).sort((a, b) => b - a),
    );
    for (const { score } of all) expect(score > 0 && score <= 1).toBe(true);
    for (const first of [0, 1, 2])
      expect(await search("smi", world.owen, { first })).toEqual(all.slice(0, first));
    expect((await search("john smith"))[0]!.score).toBeGreaterThan(
      (await search("jon smith"))[0]?.score ?? 0,
    );
    expect((await search("public park"))[0]).toMatchObject({ type: "PROJECT", score: 1 });
  });

  test("types: the given ones, all by default, none for an empty list", async () => {
    const kinds = async (types: string[] | null) =>
      [...new Set((await search("zephyr", world.owen, { types })).map((r) => r.type))].sort();
    expect(await kinds(null)).toEqual(["BUYER", "BUYER_AGENT", "FLOOR_PLAN", "LEAD", "UNIT"]);
    expect(await kinds(["LEAD", "BUYER"])).toEqual(["BUYER", "LEAD"]);
    expect(await kinds([])).toEqual([]);
  });

  test("contents of a result", async () => {
    const fields =
      "type title subtitle snippet highlights url imageUrl project { title } node { __typename ... on Lead { email } ... on Unit { number } }";
    const ask = async (query: string, person = world.owen) =>
      (await person.get(`query ($query: String!) { search(query: $query) { ${fields} } }`, { query })).search;
    expect(await ask("jonathan 5550")).toEqual([
      {
        type: "LEAD",
        title: "Jonathan Smith",
        subtitle: "Acme & Söhne · jon.smith77@mail.example",
        snippet: "+14165550123",
        highlights: ["Jonathan", "+14165550123"],
        url: expect.stringMatching(/^\/projects\/harbour-view\/leads\/[0-9a-f-]{36}$/),
        imageUrl: null,
        project: { title: "Harbour View" },
        node: { __typename: "Lead", email: "jon.smith77@mail.example" },
      },
    ]);
    const [unit] = await ask("a1507", world.anonymous);
    expect(unit).toMatchObject({
      node: { __typename: "Unit", number: "A1507" },
      project: { title: "Public Park" },
    });
    const { id } = (await search("a1507"))[0]!;
    const uploaded = await upload(
      world,
      world.owen,
      `mutation ($input: UploadUnitImageInput!) { uploadUnitImage(input: $input) { id } }`,
      { input: { unitId: id, file: null } },
      { "variables.input.file": { bytes: await picture(), name: "a.png" } },
    );
    expect(uploaded.errors).toBeUndefined();
    expect((await ask("a1507", world.anonymous))[0].imageUrl).toMatch(/^https:/);
    const types = await world.owen.get(`{ search(query: "zephyr") { type node { kind: __typename } } }`);
    for (const { type, node } of types.search)
      expect(node.kind).toBe(
        (
          { FLOOR_PLAN: "FloorPlan", UNIT: "Unit", LEAD: "Lead", BUYER: "Buyer", BUYER_AGENT: "Agent" } as any
        )[type],
      );
  });

  test("a change is found by the next query, and a deleted record is not", async () => {
    const { owen, project, max, sam, olga } = world;
    const mutate = (field: string, input: Record<string, unknown>, person = owen) =>
      person.get(mutationOf(field, "{ __typename }"), { input });
    const id = await create("createLead", { projectId: project.id, name: "Fresh Freshman" });
    expect(await titles("fresh")).toEqual(["Fresh Freshman"]);
    await mutate("updateLead", { id, name: "Stale Freshman", email: "stale@example.com" });
    expect(await titles("fresh")).toEqual(["Stale Freshman"]);
    expect(await titles("stale@example")).toEqual(["Stale Freshman"]);
    expect(await titles("stale", sam)).toEqual([]);
    await world.owner.query("update app_public.leads set assignee_id = $2 where id = $1", [id, sam.id]);
    expect(await titles("stale", sam)).toEqual(["Stale Freshman"]);
    await mutate("updateLead", { id, assigneeId: max.id });
    expect(await titles("stale", sam)).toEqual([]);
    await mutate("deleteLead", { id });
    expect(await titles("stale")).toEqual([]);
    const unit = await create("createUnit", { projectId: world.park.id, title: "Latecomer", price: "1" });
    expect(await titles("latecomer", olga)).toEqual([]);
    await mutate("updateUnit", { id: unit, status: "AVAILABLE" });
    expect(await titles("latecomer", olga)).toEqual(["Latecomer"]);
    await mutate("updateProject", { id: world.park.id, status: "ARCHIVED" });
    for (const query of ["latecomer", "public park"]) expect(await titles(query, olga)).toEqual([]);
    expect(await titles("latecomer")).toEqual(["Latecomer"]);
    await mutate("updateProject", { id: world.park.id, status: "SELLING" });
    expect(await titles("latecomer", world.anonymous)).toEqual(["Latecomer"]);
    await mutate("deleteUnit", { id: unit });
    for (const person of [owen, olga]) expect(await titles("latecomer", person)).toEqual([]);
  });

  test("a page of many takes as many statements as one of few", async () => {
    const ask = (first: number) =>
      world.statements(() =>
        world.owen.get(
          `query ($first: Int) { search(query: "zephyr", first: $first, types: [LEAD, UNIT]) { id project { title } node { __typename ... on Lead { name } ... on Unit { title } } } }`,
          { first },
        ),
      );
    // Both types are in the smallest page, too.
    const few = await world.statements(() =>
      world.owen.get(
        `{ search(query: "zephyr harbour", types: [LEAD, UNIT]) { id project { title } node { __typename ... on Unit { title } } } }`,
      ),
    );
    const many = await ask(100);
    expect(many.result.search.length).toBe(10);
    expect(few.result.search.length).toBe(2);
    expect([few.count, many.count]).toEqual([3, 4]);
    expect((await ask(8)).count).toBe(4);
  });

  test("a search indexes pending bulk changes first", async () => {
    const waiting = async (): Promise<number> =>
      (await world.owner.query("select count(*)::int from app_private.search_backlog")).rows[0].count;
    await world.owner.query(
      "insert into app_public.leads (project_id, name) select $1, 'Quorum Nr ' || i from generate_series(1, 1200) i",
      [world.project.id],
    );
    expect(await waiting()).toBeGreaterThan(1);
    // A record that is changed before it is indexed is found by its present name.
    await world.owner.query("update app_public.leads set name = 'Quorum Changed' where name = 'Quorum Nr 7'");
    expect(await titles("quorum", world.olga)).toEqual([]);
    expect(await waiting()).toBeGreaterThan(1);
    expect(await titles("quorum 1199")).toEqual(["Quorum Nr 1199"]);
    expect(await waiting()).toBe(0);
    expect(await titles("quorum changed")).toEqual(["Quorum Changed"]);
    expect(await titles("quorum 7", world.owen, { first: 1 })).not.toContain("Quorum Nr 7");
    await world.owner.query(
      "insert into app_public.leads (project_id, name) select $1, 'Quota Nr ' || i from generate_series(1, 1200) i",
      [world.project.id],
    );
    const { leadsConnection } = await world.owen.get(
      `{ leadsConnection(filter: { query: "quota" }) { totalCount } }`,
    );
    expect(leadsConnection.totalCount).toBe(1200);
    // The found records are looked up by their keys, also under row security.
    await world.owner.query("analyze app_public.leads");
    const found = await explain(
      world,
      world.owen,
      `{ search(query: "quota", first: 20) { node { ... on Lead { email } } } }`,
    );
    expect(found.indexes).toContain("leads_pkey");
    expect(found.touched("leads")).toBe(20);
    // So are bulk updates: found by the new words and not the old ones.
    await world.owner.query(
      "update app_public.leads set name = replace(name, 'Quota', 'Quarto') where name like 'Quota Nr %'",
    );
    expect(await waiting()).toBeGreaterThan(1);
    expect(await titles("quota 1199")).toEqual([]);
    expect(await titles("quarto 1199")).toEqual(["Quarto Nr 1199"]);
    expect(await waiting()).toBe(0);
    // The job does the same.
    await world.owner.query(
      "insert into app_public.leads (project_id, name) select $1, 'Query Nr ' || i from generate_series(1, 1200) i",
      [world.project.id],
    );
    await world.owner.query("select app_private.catch_up_search(100)");
    expect(await waiting()).toBe(0);
  });

  test("records loaded without triggers are found after fill_search_texts, which changes nothing else", async () => {
    const { owner } = world;
    const texts = async () =>
      (
        await owner.query(
          "select t.*, array(select unnest(t.scopes) order by 1) as scopes from app_private.search_texts t order by t.type, t.id",
        )
      ).rows;
    const before = await texts();
    await owner.query("select app_private.fill_search_texts()");
    expect(await texts()).toEqual(before);
  });
});

describe("refusals", () => {
  test.each<[what: string, variables: Record<string, unknown>, refusal: Record<string, unknown>]>([
    ["nothing", { query: "" }, { code: "BAD_USER_INPUT", field: "query" }],
    ["spaces", { query: " \t " }, { code: "BAD_USER_INPUT", field: "query" }],
    ["a wildcard", { query: "%" }, { code: "BAD_USER_INPUT", field: "query" }],
    ["wildcards", { query: "_%" }, { code: "BAD_USER_INPUT", field: "query" }],
    ["one letter", { query: "É" }, { code: "BAD_USER_INPUT", field: "query" }],
    ["201 letters", { query: "x".repeat(201) }, { code: "LIMIT_EXCEEDED", field: "query", limit: 200 }],
    ["10,000 letters", { query: "x".repeat(10_000) }, { code: "LIMIT_EXCEEDED", field: "query", limit: 200 }],
    [
      "too many results",
      { query: "smith", first: 1001 },
      { code: "LIMIT_EXCEEDED", field: "first", limit: 1000 },
    ],
    ["fewer than none", { query: "smith", first: -1 }, { code: "BAD_USER_INPUT", field: "first" }],
    ["no query", {}, { code: "BAD_USER_INPUT" }],
    ["a kind that there is not", { query: "smith", types: ["HOUSE"] }, { code: "BAD_USER_INPUT" }],
    ["a null byte", { query: "sm\u0000ith" }, { code: "BAD_USER_INPUT" }],
  ])("%s", async (_, variables, refusal) => {
    for (const person of [world.owen, world.anonymous])
      expect(await person.refused(document, variables)).toMatchObject(refusal);
  });
});
