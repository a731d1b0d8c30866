/** Personalizations of a unit: which options can be chosen when and by whom, and their total price. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { type Create, createIn, mutationOf } from "../harness/records.ts";
import { expectUnchanged } from "../harness/expectUnchanged.ts";
import { programOf } from "../harness/world.ts";

let world: Portfolio;
let create: Create;
let bo: Person;
let kitchen: string;
let bath: string;
const options: Record<string, string> = {};
const elements: Record<string, string> = {};

beforeAll(async () => {
  world = await startPortfolio();
  create = createIn(world.owen);
  bo = await world.signUp("Bo Buyer");
  kitchen = await create("createSpecCategory", { projectId: world.park.id, title: "Kitchen" });
  bath = await create("createSpecCategory", { projectId: world.park.id, title: "Bath" });
  const element = async (name: string, categoryId: string, input: Record<string, unknown> = {}) =>
    (elements[name] = await create("createSpecElement", { categoryId, title: name, ...input }));
  const option = async (name: string, elementName: string, price: string, input = {}) =>
    (options[name] = await create("createSpecOption", {
      elementId: elements[elementName],
      title: name,
      price,
      tier: "UPGRADE",
      ...input,
    }));
  await element("Counter", kitchen, { lockPhase: "DRYWALL" });
  await element("Lights", kitchen, { selectionMode: "MULTIPLE" });
  await element("Tiles", bath);
  await option("Quartz", "Counter", "3333.33");
  await option("Marble", "Counter", "5000");
  await option("Pendant", "Lights", "199.99", { maxQuantity: 6 });
  await option("Strip", "Lights", "0.35");
  await option("Mosaic", "Tiles", "1000.01");
  await option("Old", "Tiles", "1", { active: false });
  await world.owen.get(
    `mutation ($id: ID!, $excluded: [ID!]) { updateSpecOption(input: { id: $id, excludedOptionIds: $excluded }) { id } }`,
    { id: options.Mosaic, excluded: [options.Strip] },
  );
});
afterAll(() => world.stop());

let numbers = 0;
const unit = (input: Record<string, unknown> = {}) =>
  create("createUnit", {
    projectId: world.park.id,
    title: `Home ${++numbers}`,
    number: `${numbers}`,
    status: "AVAILABLE",
    price: "400000.10",
    ...input,
  });
/** Runs `during` while an option of the element is required. */
async function requiring(element: string, during: () => Promise<void>): Promise<void> {
  const set = (required: boolean) =>
    world.owen.get(
      `mutation ($id: ID!, $required: Boolean!) { updateSpecElement(input: { id: $id, required: $required }) { id } }`,
      { id: elements[element], required },
    );
  await set(true);
  try {
    await during();
  } finally {
    await set(false);
  }
}

/** A purchase of a unit, with the user who makes it. */
async function purchase(unitId: string, user: Person | null = null): Promise<string> {
  const { rows } = await world.owner.query(
    `insert into app_public.buyers (organization_id, project_id, unit_id, user_id, price, status, legal_name)
     select organization_id, project_id, id, $2, 390000.05, 'DRAFT', 'Bo Buyer' from app_public.units where id = $1 returning id`,
    [unitId, user?.id],
  );
  return rows[0].id;
}
const sums = "status selectionsTotal discountsTotal creditsTotal total warnings";
const selections = (...names: string[]) => names.map((name) => ({ optionId: options[name] }));
const begin = (input: Record<string, unknown>, by: Person = world.owen) =>
  create("createPersonalization", input, by);
const change = async (input: Record<string, unknown>, by: Person = world.owen) =>
  (
    await by.get(
      `mutation ($input: UpdatePersonalizationInput!) { updatePersonalization(input: $input) { id version ${sums} } }`,
      { input },
    )
  ).updatePersonalization;
const refuse = (input: Record<string, unknown>, by: Person = world.owen) =>
  by.refused(
    `mutation ($input: UpdatePersonalizationInput!) { updatePersonalization(input: $input) { id } }`,
    { input },
  );
const refuseNew = (input: Record<string, unknown>, by: Person = world.owen) =>
  by.refused(
    `mutation ($input: CreatePersonalizationInput!) { createPersonalization(input: $input) { id } }`,
    { input },
  );
const read = async (id: string, by: Person = world.owen) =>
  (
    await by.sees(
      `query ($id: ID!) { personalization(id: $id) { ${sums} currency version
        selections { quantity unitPrice total locked element { title } option { title } } } }`,
      { id },
    )
  ).personalization;
const credit = (personalizationId: string, amount: string, input = {}, by?: Person) =>
  create("createPersonalizationCredit", { personalizationId, title: "Thanks", amount, ...input }, by);
const discount = (personalizationId: string, percent: string, input = {}, by?: Person) =>
  create("createPersonalizationDiscount", { personalizationId, title: "Sale", percent, ...input }, by);

describe("total price", () => {
  test("to the cent: options, then discounts rounded half up and capped, then credits, never below zero", async () => {
    const unitId = await unit();
    const id = await begin({
      unitId,
      selections: [
        { optionId: options.Quartz },
        { optionId: options.Pendant, quantity: "2.5" },
        { optionId: options.Strip, quantity: "0.1", note: "  under the shelf " },
      ],
    });
    // 3333.33 + 499.975 → 499.98 + 0.035 → 0.04
    expect(await read(id)).toMatchObject({ currency: "CAD", selectionsTotal: "3833.35", total: "3833.35" });
    await discount(id, "12.5"); // 479.16875 → 479.17
    await discount(id, "10", { appliesTo: "CATEGORY", categoryId: kitchen, maxAmount: "100" });
    await discount(id, "0.1", { appliesTo: "PURCHASE_PRICE" }); // 400.0001 → 400.00
    expect(await read(id)).toMatchObject({ discountsTotal: "979.17", total: "2854.18" });
    await credit(id, "2854.17");
    expect(await read(id)).toMatchObject({ creditsTotal: "2854.17", total: "0.01" });
    await credit(id, "5000");
    expect(await read(id)).toMatchObject({ creditsTotal: "7854.17", total: "0.00" });
  });

  test("a discount can refer to the price of the purchase, if there is one", async () => {
    const unitId = await unit();
    const id = await begin({ unitId, buyerId: await purchase(unitId), selections: selections("Mosaic") });
    await discount(id, "0.1", { appliesTo: "PURCHASE_PRICE" }); // 390.00005 → 390.00
    expect(await read(id)).toMatchObject({ discountsTotal: "390.00", total: "610.01" });
  });

  test("current prices apply until it is approved", async () => {
    const optionId = await create("createSpecOption", {
      elementId: elements.Tiles,
      title: "Slate",
      price: "100",
    });
    const id = await begin({ unitId: await unit(), selections: [{ optionId, quantity: "2" }] });
    await discount(id, "50");
    const price = (value: string) =>
      world.owen.get(
        `mutation ($id: ID!, $price: Decimal) { updateSpecOption(input: { id: $id, price: $price }) { id } }`,
        { id: optionId, price: value },
      );
    await price("200");
    expect(await read(id)).toMatchObject({ selectionsTotal: "400.00", total: "200.00" });
    await change({ id, status: "SUBMITTED" });
    await change({ id, status: "APPROVED" });
    await price("900");
    expect(await read(id)).toMatchObject({
      selectionsTotal: "400.00",
      discountsTotal: "200.00",
      selections: [{ unitPrice: "200.00", total: "400.00", locked: false }],
    });
    await discount(id, "10"); // approved at once, so of the approved price
    expect(await read(id)).toMatchObject({ discountsTotal: "240.00", total: "160.00" });
    await change({ id, status: "SIGNED" });
    for (const refused of [credit(id, "1"), discount(id, "1")])
      await expect(refused).rejects.toThrow(/CONFLICT/);
    expect((await read(id)).selections[0].locked).toBe(true);
  });
});

describe("choosing", () => {
  test("the list replaces the previous options; an element with a single choice accepts one", async () => {
    const id = await begin({ unitId: await unit(), selections: selections("Quartz", "Mosaic") });
    await change({ id, selections: [...selections("Marble"), { optionId: options.Pendant, quantity: "3" }] });
    expect(
      (await read(id)).selections.map((s: any) => [s.element.title, s.option.title, s.quantity]),
    ).toEqual([
      ["Counter", "Marble", "1.00"],
      ["Lights", "Pendant", "3.00"],
    ]);
    await change({ id, selections: [] });
    expect((await read(id)).selections).toEqual([]);
  });

  test("unavailable options are refused, and nothing changes", async () => {
    const id = await begin({ unitId: await unit(), selections: selections("Quartz") });
    const foreign = await create("createSpecCategory", { projectId: world.project.id, title: "K" });
    const foreignElement = await create("createSpecElement", { categoryId: foreign, title: "E" });
    const foreignOption = await create("createSpecOption", {
      elementId: foreignElement,
      title: "O",
      price: "1",
    });
    await expectUnchanged(world, async () => {
      const cases: [unknown[], string][] = [
        [selections("Quartz", "Marble"), "BAD_USER_INPUT"],
        [selections("Quartz", "Quartz"), "BAD_USER_INPUT"],
        [selections("Old"), "BAD_USER_INPUT"],
        [[{ optionId: options.Pendant, quantity: "7" }], "BAD_USER_INPUT"],
        [[{ optionId: options.Pendant, quantity: "0" }], "BAD_USER_INPUT"],
        [[{ optionId: options.Pendant, quantity: "-1" }], "BAD_USER_INPUT"],
        [[{ optionId: options.Pendant, quantity: "1.005" }], "BAD_USER_INPUT"],
        [[{ optionId: foreignOption }], "NOT_FOUND"],
        [[{ optionId: "00000000-0000-7000-8000-000000000000" }], "NOT_FOUND"],
        [[{ quantity: "1" }], "BAD_USER_INPUT"],
        [Array.from({ length: 501 }, () => ({ optionId: options.Pendant })), "LIMIT_EXCEEDED"],
      ];
      for (const [given, code] of cases)
        expect([given, (await refuse({ id, selections: given })).code]).toEqual([given, code]);
    });
    expect((await read(id)).selections).toHaveLength(1);
  });

  test("options whose construction has begun cannot be changed", async () => {
    const unitId = await unit();
    const id = await begin({ unitId, selections: selections("Quartz", "Mosaic") });
    await world.owen.get(
      `mutation ($id: ID!) { updateUnit(input: { id: $id, constructionStatus: INTERIOR_FINISHES }) { id } }`,
      { id: unitId },
    );
    expect((await read(id)).selections.map((s: any) => s.locked)).toEqual([true, false]);
    expect((await read(id)).warnings).toEqual([
      expect.stringContaining(
        '"Counter" can no longer be changed: construction has reached INTERIOR_FINISHES.',
      ),
    ]);
    expect(await refuse({ id, selections: selections("Marble") })).toMatchObject({
      code: "CONFLICT",
      field: "selections",
    });
    expect(await refuse({ id, selections: [] })).toMatchObject({ code: "CONFLICT" });
    // The rest of the list can still be changed.
    expect(await change({ id, selections: selections("Quartz", "Strip") })).toMatchObject({
      selectionsTotal: "3333.68",
    });
    expect(await refuseNew({ unitId, selections: selections("Marble") })).toMatchObject({ code: "CONFLICT" });
  });

  test("warnings report missing and incompatible options", async () => {
    const id = await begin({
      unitId: await unit(),
      dueOn: "2020-01-31",
      selections: selections("Mosaic", "Strip"),
    });
    await requiring("Counter", async () =>
      expect((await read(id)).warnings).toEqual(
        [
          '"Mosaic" and "Strip" do not go together.',
          'Nothing is chosen for "Counter", which is required.',
          "The options were to be chosen by 2020-01-31.",
        ].sort(),
      ),
    );
  });

  test("an expected version also applies to the options", async () => {
    const id = await begin({ unitId: await unit(), selections: selections("Quartz") });
    const { version } = await read(id);
    const answers = await Promise.all(
      ["Marble", "Mosaic"].map((name) =>
        world.owen.ask(
          `mutation ($input: UpdatePersonalizationInput!) { updatePersonalization(input: $input) { version } }`,
          { input: { id, expectedVersion: version, selections: selections(name) } },
        ),
      ),
    );
    expect(answers.map((a) => a.errors?.[0]?.extensions.code).sort()).toEqual([
      "VERSION_MISMATCH",
      undefined,
    ]);
    expect((await read(id)).selections).toHaveLength(1);
  });
});

describe("steps", () => {
  const states = [
    "DRAFT",
    "SUBMITTED",
    "CHANGES_REQUESTED",
    "APPROVED",
    "SIGNED",
    "LOCKED",
    "SUPERSEDED",
    "CANCELLED",
  ];
  const steps: Record<string, string[]> = {
    DRAFT: ["CANCELLED", "SUBMITTED"],
    SUBMITTED: ["APPROVED", "CANCELLED", "CHANGES_REQUESTED"],
    CHANGES_REQUESTED: ["CANCELLED", "SUBMITTED"],
    APPROVED: ["CANCELLED", "SIGNED"],
    SIGNED: ["LOCKED"],
    LOCKED: [],
    SUPERSEDED: [],
    CANCELLED: [],
  };
  /** A personalization in the given state. */
  async function inState(from: string): Promise<string> {
    const id = await begin({ unitId: await unit(), selections: selections("Mosaic") });
    await world.owner.query(
      `begin; set local session_replication_role = replica;
       update app_public.personalizations set status = '${from}' where id = '${id}'; commit`,
    );
    return id;
  }

  test.each(states)("from %s the listed transitions succeed, with one event each", async (from) => {
    for (const to of steps[from]!) {
      const id = await inState(from);
      expect((await change({ id, status: to })).status).toBe(to);
      const { rows } = await world.owner.query(
        "select count(*)::int as events from app_public.events where subject_id = $1 and changes ? 'status'",
        [id],
      );
      expect(rows).toEqual([{ events: 1 }]);
    }
  });

  test.each(states)("from %s all other transitions are refused", async (from) => {
    const id = await inState(from);
    for (const to of states.filter((state) => state !== from && !steps[from]!.includes(state)))
      expect(await refuse({ id, status: to })).toMatchObject({
        code: "INVALID_TRANSITION",
        from,
        to,
        allowedTransitions: steps[from],
      });
  });

  test("an empty personalization cannot be submitted, and a submitted one cannot be changed", async () => {
    const id = await begin({ unitId: await unit() });
    expect(await refuse({ id, status: "SUBMITTED" })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "selections",
    });
    await change({ id, selections: selections("Quartz") });
    await change({ id, status: "SUBMITTED" });
    expect(await refuse({ id, selections: selections("Marble") })).toMatchObject({
      code: "CONFLICT",
      field: "selections",
    });
    await change({ id, status: "CHANGES_REQUESTED" });
    expect(await change({ id, selections: selections("Marble") })).toMatchObject({
      selectionsTotal: "5000.00",
    });
  });

  test("a required element must be chosen before submission, unless it was chosen before or is no longer available", () =>
    requiring("Counter", async () => {
      const unitId = await unit();
      const id = await begin({ unitId, selections: selections("Mosaic") });
      expect(await refuse({ id, status: "SUBMITTED" })).toMatchObject({
        code: "BAD_USER_INPUT",
        message: 'Choose an option for "Counter" before you submit.',
        field: "selections",
        elementIds: [elements.Counter],
      });
      expect(await read(id)).toMatchObject({ status: "DRAFT" });
      await change({ id, selections: selections("Mosaic", "Quartz") });
      await change({ id, status: "SUBMITTED" });
      await change({ id, status: "APPROVED" });
      const later = await begin({ unitId, selections: selections("Pendant") });
      expect((await read(later)).warnings).toEqual([]);
      await change({ id: later, status: "SUBMITTED" });
      const built = await unit({ constructionStatus: "INTERIOR_FINISHES" });
      const tooLate = await begin({ unitId: built, selections: selections("Mosaic") });
      await change({ id: tooLate, status: "SUBMITTED" });
    }));

  test("an element is sold once: a later personalization replaces one that is not signed, and is refused after one that is", async () => {
    const unitId = await unit();
    const approve = async (...names: string[]) => {
      const id = await begin({ unitId, selections: selections(...names) });
      await change({ id, status: "SUBMITTED" });
      return id;
    };
    const first = await approve("Quartz", "Pendant");
    await change({ id: first, status: "APPROVED" });
    const lights = await approve("Strip");
    await change({ id: lights, status: "APPROVED" });
    const second = await approve("Marble");
    await change({ id: second, status: "APPROVED" });
    expect([(await read(first)).status, (await read(lights)).status]).toEqual(["SUPERSEDED", "APPROVED"]);
    await change({ id: second, status: "SIGNED" });
    const third = await approve("Quartz");
    expect(await refuse({ id: third, status: "APPROVED" })).toMatchObject({
      code: "CONFLICT",
      existingId: second,
    });
  });

  test("an approved personalization cannot be deleted", async () => {
    const id = await begin({ unitId: await unit(), selections: selections("Mosaic") });
    await change({ id, status: "SUBMITTED" });
    await change({ id, status: "APPROVED" });
    const remove = `mutation ($id: ID!) { deletePersonalization(input: { id: $id }) { deleted } }`;
    expect((await world.owen.refused(remove, { id })).code).toBe("CONFLICT");
    const draft = await begin({ unitId: await unit() });
    expect((await world.owen.get(remove, { id: draft })).deletePersonalization.deleted).toBe(true);
    expect(await read(draft)).toBeNull();
  });
});

describe("credits and discounts", () => {
  test.each([
    ["createPersonalizationCredit", { amount: "0" }, "BAD_USER_INPUT"],
    ["createPersonalizationCredit", { amount: "-5" }, "BAD_USER_INPUT"],
    ["createPersonalizationCredit", { amount: "1.005" }, "BAD_USER_INPUT"],
    ["createPersonalizationDiscount", { percent: "101" }, "BAD_USER_INPUT"],
    ["createPersonalizationDiscount", { percent: "0" }, "BAD_USER_INPUT"],
    ["createPersonalizationDiscount", { percent: "1", maxAmount: "0" }, "BAD_USER_INPUT"],
    ["createPersonalizationDiscount", { percent: "1", appliesTo: "CATEGORY" }, "BAD_USER_INPUT"],
  ])("%s refuses %j", async (field, input, code) => {
    const id = await begin({ unitId: await unit(), selections: selections("Mosaic") });
    const refused = await expectUnchanged(world, () =>
      world.owen.refused(mutationOf(field), {
        input: { personalizationId: id, title: "T", ...input },
      }),
    );
    expect(refused.code).toBe(code);
  });

  test("a promotion is used while it runs, up to its limit, and its use is returned", async () => {
    const promotionId = await create("createPromotion", {
      projectId: world.park.id,
      title: "Spring",
      kind: "OPTION_CREDIT",
      amount: "500",
      startsAt: "2024-01-01T00:00:00Z",
      usageLimit: 1,
    });
    const id = await begin({ unitId: await unit(), selections: selections("Mosaic") });
    const used = await credit(id, "500", { promotionId });
    const count = async () =>
      (await world.owner.query("select usage_count from app_public.promotions where id = $1", [promotionId]))
        .rows[0].usage_count;
    expect(await count()).toBe(1);
    const other = await begin({ unitId: await unit(), selections: selections("Mosaic") });
    await expect(credit(other, "500", { promotionId })).rejects.toThrow(/EXHAUSTED/);
    await world.owen.get(
      `mutation ($id: ID!) { deletePersonalizationCredit(input: { id: $id }) { deleted } }`,
      {
        id: used,
      },
    );
    expect([await count(), (await read(id)).total]).toEqual([0, "1000.01"]);
    await credit(other, "500", { promotionId });
  });
});

describe("permissions", () => {
  const write = `mutation ($input: CreatePersonalizationInput!) { createPersonalization(input: $input) { id } }`;

  test("the sales team has access to its deals only", async () => {
    const unitId = await unit();
    const lead = await createLead(world.owen, {
      projectId: world.park.id,
      name: "Lea",
      email: "lea@example.com",
    });
    for (const person of [world.owen, world.ada, world.max])
      await begin({ unitId, leadId: lead.id, selections: selections("Mosaic") }, person);
    for (const [person, code] of [
      [world.olga, "NOT_FOUND"],
      [bo, "NOT_FOUND"],
      [world.anonymous, "UNAUTHENTICATED"],
    ] as const)
      expect((await person.refused(write, { input: { unitId, leadId: lead.id } })).code).toBe(code);
    for (const person of [world.olga, bo, world.anonymous])
      expect((await person.refused(write, { input: { unitId } })).code).toMatch(/FORBIDDEN|UNAUTHENTICATED/);
    const id = await begin({ unitId, leadId: lead.id, selections: selections("Mosaic") });
    for (const person of [world.olga, bo, world.anonymous, world.sam, world.bob]) {
      expect(await read(id, person)).toBeNull();
      expect((await refuse({ id, notes: "x" }, person)).code).toMatch(/NOT_FOUND|UNAUTHENTICATED/);
    }
  });

  test("a buyer selects options of the own purchase and submits them; the team does the rest", async () => {
    const [mine, theirs] = [await unit(), await unit()];
    const buyerId = await purchase(mine, bo);
    const otherBuyer = await purchase(theirs, world.olga);
    const id = await begin({ unitId: mine, buyerId, selections: selections("Mosaic") }, bo);
    expect(await change({ id, selections: selections("Mosaic", "Pendant") }, bo)).toMatchObject({
      selectionsTotal: "1200.00",
    });
    await expect(credit(id, "100", {}, bo)).rejects.toThrow(/FORBIDDEN/);
    await expect(discount(id, "100", {}, bo)).rejects.toThrow(/FORBIDDEN/);
    await world.owner.query("insert into app_private.limit_changes values ('buyer.change', 1, 'A test.')");
    expect(await refuse({ id, notes: "again and again" }, bo)).toMatchObject({ code: "RATE_LIMITED" });
    await change({ id, notes: "by the team" });
    await world.owner.query("delete from app_private.limit_changes where name = 'buyer.change'");
    // Only the sales team sets the deadline.
    const byTheTeam = { code: "FORBIDDEN", permission: "sale.write", field: "dueOn" };
    await change({ id, dueOn: "2031-01-31" });
    expect(await refuse({ id, dueOn: "2032-01-31" }, bo)).toMatchObject(byTheTeam);
    expect(await refuse({ id, dueOn: null }, bo)).toMatchObject(byTheTeam);
    expect(await refuseNew({ unitId: mine, buyerId, dueOn: "2032-01-31" }, bo)).toMatchObject(byTheTeam);
    await change({ id, dueOn: "2031-01-31" }, bo); // the present value
    await change({ id, status: "SUBMITTED" }, bo);
    for (const status of ["APPROVED", "CHANGES_REQUESTED"])
      expect(await refuse({ id, status }, bo)).toMatchObject({ code: "FORBIDDEN", permission: "sale.write" });
    await change({ id, status: "APPROVED" });
    expect(await refuse({ id, status: "SIGNED" }, bo)).toMatchObject({ code: "FORBIDDEN" });
    expect((await refuseNew({ unitId: theirs, buyerId: otherBuyer }, bo)).code).toBe("NOT_FOUND");
    const other = await begin({ unitId: theirs, buyerId: otherBuyer, selections: selections("Mosaic") });
    expect(await read(other, bo)).toBeNull();
    expect((await read(other, world.olga)).total).toBe("1000.01");
  });

  test("a read-only token cannot select options, not even in SQL", async () => {
    const id = await begin({ unitId: await unit(), selections: selections("Mosaic") });
    const reader = await programOf(world, world.owen, {
      scopes: ["sale.read", "inventory.read", "project.read"],
    });
    expect(await read(id, reader)).toMatchObject({ total: "1000.01" });
    expect(await refuse({ id, selections: [] }, reader)).toMatchObject({ code: "FORBIDDEN" });
    const client = await world.owner.connect();
    try {
      await client.query("begin; set local role plat_user");
      await client.query(
        "select set_config('plat.user_id', $1, true), set_config('plat.scopes', 'sale.read', true)",
        [world.owen.id],
      );
      const { rowCount } = await client.query(
        "delete from app_public.personalization_selections where personalization_id = $1",
        [id],
      );
      expect(rowCount).toBe(0);
    } finally {
      await client.query("rollback");
      client.release();
    }
  });

  test("both of lead and buyer, a unit of another project, a buyer of another unit", async () => {
    const [unitId, otherUnit] = [await unit(), await unit()];
    const buyerId = await purchase(unitId);
    const lead = await createLead(world.owen, { projectId: world.park.id, name: "Lee" });
    await expectUnchanged(world, async () => {
      expect(await refuseNew({ unitId, leadId: lead.id, buyerId })).toMatchObject({
        code: "BAD_USER_INPUT",
        field: "leadId",
      });
      expect(await refuseNew({ unitId, leadId: world.leads.open.id })).toMatchObject({
        code: "NOT_FOUND",
        field: "leadId",
      });
      expect(await refuseNew({ unitId: otherUnit, buyerId })).toMatchObject({
        code: "BAD_USER_INPUT",
        field: "unitId",
      });
    });
  });
});

test("a page of many takes as many statements as one", async () => {
  const unitIds = await Promise.all(Array.from({ length: 12 }, () => unit()));
  for (const unitId of unitIds)
    await begin({ unitId, selections: selections("Quartz", "Pendant", "Mosaic") });
  const page = (first: number) =>
    world.statements(() =>
      world.owen.get(
        `query ($id: ID!, $first: Int) { unitsConnection(projectId: $id, first: $first) { nodes { personalizations(first: 5) {
          total warnings selections { total option { title element { title category { title } } } } credits { amount } discounts { amount } } } } }`,
        { id: world.park.id, first },
      ),
    );
  const [one, many] = [await page(1), await page(50)];
  expect(many.count).toBe(one.count);
});
