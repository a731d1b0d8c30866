/** Numbers of reservations, offers and agreements: how they are assigned, and who finds records by them. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { createBuyer, invite } from "../harness/deals.ts";
import { readMatrix } from "../harness/matrix.ts";
import { negotiate } from "../harness/negotiations.ts";
import { startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { affiliate, createProject, programOf } from "../harness/world.ts";

let world: Portfolio;
let people: Record<string, Person>;

/** The deals in the rows of the table below: the id and number of each record. */
type Deal = Record<string, { id: string; number: string; type: string }>;
const deals: Record<string, Deal> = {};

const types = { reservation: "RESERVATION", offer: "OFFER", agreement: "AGREEMENT" } as const;
const fields = `id type title subtitle snippet highlights score url project { slug }
  node { ... on Reservation { id number } ... on Offer { id number } ... on Agreement { id number } }`;
const search = async (query: string, person: Person, more: Record<string, unknown> = {}): Promise<any[]> =>
  (
    await person.get(
      `query ($query: String!, $types: [SearchResultType!], $projectId: ID, $first: Int) {
         search(query: $query, types: $types, projectId: $projectId, first: $first) { ${fields} } }`,
      { query, ...more },
    )
  ).search;

let homes = 0;

/** All records of a deal: a reservation of the lead, a negotiation with an offer, and an agreement. */
async function deal(
  by: Person,
  project: { id: string },
  leadId: string,
  agreement: Record<string, unknown> = {},
): Promise<Deal> {
  const create = createIn(by);
  // Only the developer can create units.
  const unitId = await createIn(project.id === world.peak.id ? world.olga : world.owen)("createUnit", {
    projectId: project.id,
    title: "Home",
    number: `H-${(homes += 1)}`,
    status: "AVAILABLE",
    price: "400000",
  });
  const reservation = await create("createReservation", { unitId, leadId, acceptedTerms: true });
  const negotiationId = await create("createNegotiation", { unitId, reservationId: reservation });
  const offer = await create("createOffer", { negotiationId, side: "BUYER", price: "390000" });
  const signed = await create("createAgreement", {
    leadId,
    type: "RESERVATION",
    title: "Contract",
    status: "SENT",
    ...agreement,
  });
  const made: Deal = {};
  for (const [kind, id] of Object.entries({ reservation, offer, agreement: signed }))
    made[kind] = {
      id,
      type: types[kind as keyof typeof types],
      number: (await world.owner.query(`select number from app_public.${kind}s where id = $1`, [id])).rows[0]
        .number,
    };
  return made;
}

beforeAll(async () => {
  world = await startPortfolio();
  const { owen, max, mia, sam, bob, olga, project, quiet, peak, leads, anonymous } = world;
  const [bea, lena] = (await Promise.all(["Bea Buyer", "Lena Lender"].map(world.signUp))) as [Person, Person];
  const bank = (await lena.get(`mutation { createOrganization(input: { name: "Lender Bank" }) { id } }`))
    .createOrganization;
  await affiliate(world, project, bank, "LENDER");
  const token = (scopes: string[]) => programOf(world, owen, { scopes });
  people = {
    owen,
    max,
    mia,
    sam,
    bob,
    lena,
    olga,
    bea,
    sale: await token(["sale.read"]),
    lead: await token(["lead.read"]),
    home: await token(["inventory.read", "project.read"]),
    anonymous,
  };

  deals.sams = await deal(sam, project, leads.sams.id);
  deals.open = await deal(owen, project, leads.open.id);
  deals.maxs = await deal(max, quiet, leads.maxs.id);
  deals.mias = await deal(mia, quiet, leads.mias.id);
  deals.foreign = await deal(olga, peak, leads.foreign.id);

  const own = await createIn(owen)("createLead", { projectId: quiet.id, name: "Bea Lead" });
  const purchase = await createBuyer(owen, quiet, { legalName: "Bea Buyer" });
  await invite(world, purchase, bea);
  deals.beas = await deal(owen, quiet, own, { leadId: undefined, buyerId: purchase });
  await world.owner.query("update app_public.reservations set buyer_id = $2 where id = $1", [
    deals.beas.reservation!.id,
    bea.id,
  ]);
  deals.draft = {
    agreement: (await deal(owen, quiet, own, { leadId: undefined, buyerId: purchase, status: "DRAFT" }))
      .agreement!,
  };
});
afterAll(() => world.stop());

describe("visibility of search results by number", () => {
  const matrix = `
         | owen | max | mia | sam | bob | lena | olga | bea | sale | lead | home | anonymous
sams     | ROA  | ROA | ROA | ROA | –   | –    | –    | –   | RO   | A    | –    | –
open     | ROA  | ROA | ROA | –   | –   | –    | –    | –   | RO   | A    | –    | –
maxs     | ROA  | ROA | –   | –   | –   | –    | –    | –   | RO   | A    | –    | –
mias     | ROA  | –   | ROA | –   | –   | –    | –    | –   | RO   | A    | –    | –
foreign  | –    | –   | –   | –   | –   | –    | ROA  | –   | –    | –    | –    | –
beas     | ROA  | –   | –   | –   | –   | –    | –    | ROA | RO   | –    | –    | –
draft    | A    | –   | –   | –   | –   | –    | –    | –   | –    | –    | –    | –
`;
  const { names, rows } = readMatrix(matrix);
  test.each(rows)("$operation", async ({ operation, expected }) => {
    const cells: Record<string, string> = {};
    for (const name of names) {
      cells[name] = "";
      for (const { id, number } of Object.values(deals[operation]!)) {
        const found = await search(number, people[name]!);
        const seen = found.some((result) => result.id === id);
        if (seen) cells[name] += number[0];
        // The search by digits among all types, and within the project, has the same result; found records
        // can be read.
        const digits = await search(number.slice(2), people[name]!, { first: 1000 });
        expect([name, number, digits.some((result) => result.id === id)]).toEqual([name, number, seen]);
        for (const result of found) expect(result.node).toMatchObject({ id: result.id, number });
      }
      cells[name] ||= "–";
    }
    expect(cells).toEqual(expected);
  });

  test("a search in a project finds only its records, and none if it is not visible", async () => {
    const { owen, olga, project, quiet, peak } = world;
    const { number, id } = deals.maxs!.reservation!;
    expect((await search(number, owen, { projectId: quiet.slug })).map((result) => result.id)).toEqual([id]);
    expect((await search(number, owen, { projectId: project.id })).map((result) => result.id)).not.toContain(
      id,
    );
    expect(await search(deals.foreign!.reservation!.number, owen, { projectId: peak.id })).toEqual([]);
    expect(await search(number, olga, { projectId: quiet.id })).toEqual([]);
  });

  test("deleted records are not found", async () => {
    const { number, id } = deals.draft!.agreement!;
    await world.owen.get(mutationOf("deleteAgreement", "{ __typename }"), { input: { id } });
    expect((await search(number, world.owen)).map((result) => result.id)).not.toContain(id);
  });
});

describe("spellings of a number", () => {
  test.each([
    "R-000001",
    "r-000001",
    "R-1",
    "r1",
    "R 1",
    "r 001",
    " R000001 ",
    "R–1",
    "Ｒ－１",
    "R-00000000000000000001",
  ])("%s", async (query) => {
    const found = await search(query, world.owen, { types: ["RESERVATION"] });
    expect(new Set(found.map((result) => result.title))).toEqual(new Set(["R-000001"]));
    expect(found.map((result) => result.project.slug).sort()).toEqual(
      [world.project.slug, world.quiet.slug].sort(),
    );
    for (const result of found) expect(result.score).toBe(1);
  });

  test.each(["R-0", "R-000002 x", "Q-1", "R-99999999999999999999", "R-1.5", "RO1", "1 R", "R-12345"])(
    "not %s",
    async (query) => {
      expect(await search(query, world.owen, { types: ["RESERVATION", "OFFER", "AGREEMENT"] })).toEqual([]);
    },
  );

  test("digits alone find all three types, after matches of words", async () => {
    const { owen, quiet } = world;
    await createIn(owen)("createUnit", { projectId: quiet.id, title: "Home 1", number: "1", price: "1" });
    const found = await search("1", owen, { projectId: quiet.id });
    expect(found.map((result) => result.type).slice(-3)).toEqual(["RESERVATION", "OFFER", "AGREEMENT"]);
    expect(found[0]).toMatchObject({ type: "UNIT" });
    expect(found.slice(-3).map((result) => result.score)).toEqual([0.5, 0.5, 0.5]);
    expect((await search("1", owen, { projectId: quiet.id, first: 1 })).map((r) => r.type)).toEqual(["UNIT"]);
    expect(await search("R-1", owen, { first: 1 })).toHaveLength(1);
    expect(await search("R-1", owen, { types: ["OFFER"] })).toEqual([]);
    expect(await search("R-1", owen, { first: 0 })).toEqual([]);
  });

  test("contents of a result", async () => {
    const { reservation, offer, agreement } = deals.sams!;
    const unit = "H-1"; // of the first deal
    const of = async ({ number, id }: Deal[string]) =>
      (await search(number, world.sam)).find((result) => result.id === id);
    const about = { snippet: null, score: 1, project: { slug: "harbour-view" } };
    expect(await of(reservation!)).toEqual({
      ...about,
      id: reservation!.id,
      type: "RESERVATION",
      title: reservation!.number,
      subtitle: `Sams Sally · ${unit}`,
      highlights: [reservation!.number],
      url: `/projects/harbour-view/reservations/${reservation!.id}`,
      node: { id: reservation!.id, number: reservation!.number },
    });
    expect(await of(offer!)).toMatchObject({
      ...about,
      subtitle: `Sams Sally · ${unit}`,
      url: `/projects/harbour-view/offers/${offer!.id}`,
    });
    expect(await of(agreement!)).toMatchObject({
      ...about,
      subtitle: "Contract · Sams Sally",
      url: `/projects/harbour-view/agreements/${agreement!.id}`,
    });
  });

  test("a page takes a constant number of statements", async () => {
    const count = async (projectId: string | null) =>
      (await world.statements(() => search("1", world.owen, { projectId, types: Object.values(types) })))
        .count;
    expect(await count(null)).toBe(await count(world.quiet.id));
  });
});

describe("assignment of numbers", () => {
  test("are consecutive in a project, without gaps, under concurrency", async () => {
    const { owen } = world;
    const place = await createProject(owen, { organizationId: world.harbour.id, title: "Number Nook" });
    const table = negotiate(world, owen, place);
    const negotiations = await Promise.all(Array.from({ length: 8 }, () => table.negotiation()));
    const lead = await table.lead();
    await Promise.all([
      ...negotiations.map((negotiation) => table.offer(negotiation, "BUYER", 100)),
      // Refused, so that the next offer gets the number.
      ...negotiations.map((negotiationId) =>
        owen.ask(mutationOf("createOffer"), { input: { negotiationId, side: "BUYER", price: "-1" } }),
      ),
      ...Array.from({ length: 8 }, () =>
        table.create("createAgreement", { leadId: lead, type: "OTHER", title: "NDA" }),
      ),
    ]);
    await world.owner.query(
      "update app_private.offer_counters set last_number = 999999 where project_id = $1",
      [place.id],
    );
    await table.offer(negotiations[0]!, "SELLER", 110);
    const numbers = async (name: string) =>
      (
        await world.owner.query(
          `select number from app_public.${name} where project_id = $1 order by inserted_at, id`,
          [place.id],
        )
      ).rows.map((row) => row.number);
    const eight = (letter: string) => Array.from({ length: 8 }, (_, i) => `${letter}-00000${i + 1}`);
    expect((await numbers("offers")).sort()).toEqual([...eight("O"), "O-1000000"]);
    expect((await numbers("agreements")).sort()).toEqual(eight("A"));
  });

  test("a binding offer has the number of its offer", async () => {
    const { offers } = await world.owen.get("{ offers { id number offer { number } } }");
    expect(offers).toContainEqual({
      id: deals.open!.offer!.id,
      number: deals.open!.offer!.number,
      offer: { number: deals.open!.offer!.number },
    });
  });

  test("are in events and never change", async () => {
    const { offer, agreement } = deals.open!;
    for (const { id, number } of [offer!, agreement!]) {
      const { rows } = await world.owner.query(
        "select data ->> 'number' as number from app_public.events where subject_id = $1",
        [id],
      );
      expect(rows.length).toBeGreaterThan(0);
      for (const row of rows) expect(row.number).toBe(number);
    }
    for (const name of ["offers", "agreements"])
      await expect(
        world.owner.query(`set role plat_user; update app_public.${name} set number = 'X'; reset role`),
      ).rejects.toThrow("permission denied");
    await expect(
      world.owner.query("update app_public.offers set number = 'X' where id = $1", [offer!.id]),
    ).rejects.toThrow("neither changed nor deleted");
  });
});
