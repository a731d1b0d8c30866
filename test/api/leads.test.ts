/** Leads: states, events, partial updates, deletion, and concurrent changes. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { expectUnchanged } from "../harness/expectUnchanged.ts";
import { programOf } from "../harness/world.ts";

let world: Portfolio;
let reason: string;

beforeAll(async () => {
  world = await startPortfolio();
  const data = await world.owen.get(`{ project(id: "${world.project.id}") { falloutReasons { id name } } }`);
  reason = data.project.falloutReasons.find((r: any) => r.name === "Price too high").id;
});
afterAll(() => world.stop());

const fields = `id name firstName email phone company status statusChangedAt tags origin source isAgent subscribed
  doNotContact registeredAt firstResponseAt budgetMin budgetMax preapproved lostAt falloutNote convertedAt metadata version
  insertedAt updatedAt address { thoroughfare locality postalCode country } agent { id name email phone }
  assignee { id } leadSource { code } falloutReason { id } allowedTransitions { to allowed blockedBy }`;

async function create(input: Record<string, unknown>, person: Person = world.owen): Promise<any> {
  const data = await person.get(
    `mutation ($input: CreateLeadInput!) { createLead(input: $input) { ${fields} } }`,
    {
      input: { projectId: world.project.id, name: "Lena Lead", ...input },
    },
  );
  return data.createLead;
}
async function update(input: Record<string, unknown>, person: Person = world.owen): Promise<any> {
  const data = await person.get(
    `mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { ${fields} } }`,
    { input },
  );
  return data.updateLead;
}
const read = async (id: string) =>
  (await world.owen.get(`query ($id: ID!) { lead(id: $id) { ${fields} } }`, { id })).lead;
const eventsOf = async (id: string, person: Person = world.owen): Promise<any[]> =>
  (
    await person.get(
      `query ($id: ID!) { lead(id: $id) { events { id name changes data sequence actor { id } actorType channel requestId occurredAt
    subject { __typename ... on Lead { id } } organization { id } project { id } } } }`,
      { id },
    )
  ).lead.events;

describe("a new lead", () => {
  test("has its defaults", async () => {
    const lead = await create({});
    expect(lead).toMatchObject({
      name: "Lena Lead",
      status: "NEW",
      origin: "API",
      tags: [],
      isAgent: false,
      subscribed: false,
      doNotContact: false,
      email: null,
      metadata: null,
      assignee: null,
      version: 1,
      registeredAt: lead.insertedAt,
      updatedAt: lead.insertedAt,
    });
    expect(await read(lead.id)).toEqual(lead);
  });

  test("keeps all given values", async () => {
    const lead = await create({
      email: "Lena@Lead.example",
      phone: "416 555 0123",
      company: "Lead Ltd",
      tags: ["vip", "garden"],
      source: "walk_in",
      assigneeId: world.max.id,
      registeredAt: "2026-01-02T03:04:05-05:00",
      metadata: { a: null, b: [1, { c: null }], ü: "✓" },
      address: { locality: "Paris", country: "FR" },
      agent: { name: "Al Agent", email: "al@agent.example" },
      isRepresented: true,
    });
    expect(lead).toMatchObject({
      email: "lena@lead.example",
      phone: "+14165550123",
      company: "Lead Ltd",
      tags: ["vip", "garden"],
      leadSource: { code: "WALK_IN" },
      assignee: { id: world.max.id },
      registeredAt: expect.stringMatching(/^2026-01-02T08:04:05(\.0+)?Z$/),
      metadata: { a: null, b: [1, { c: null }], ü: "✓" },
      address: { locality: "Paris", country: "FR", thoroughfare: null, postalCode: null },
      agent: { name: "Al Agent", email: "al@agent.example" },
    });
  });

  test("takes the country of its project if its address has none", async () => {
    expect((await create({ address: { locality: "Ottawa" } })).address.country).toBe("CA");
    expect((await create({ address: {} })).address).toBeNull();
  });

  test("finds its agent by email address, or creates one", async () => {
    const one = await create({ agent: { name: "Ann Agent", email: "ann@agent.example" } });
    const two = await create({ agent: { email: "ANN@agent.example", phone: "+14165550177" } });
    const three = await create({ agent: { id: one.agent.id } });
    const other = await create({ agent: { name: "Ann Agent" } });
    expect(two.agent).toEqual({ ...one.agent, phone: "+14165550177" });
    expect(three.agent.id).toBe(one.agent.id);
    expect(other.agent.id).not.toBe(one.agent.id);
    const { agent } = await world.owen.get(`{ agent(id: "${one.agent.id}") { leads { id } } }`);
    expect(agent.leads.map((l: any) => l.id)).toEqual([three.id, two.id, one.id]);
  });
});

describe("input of a new lead", () => {
  test("equals that of updateLead, plus the origin", async () => {
    const input = {
      firstName: "Lena",
      lastName: "Lead",
      legalName: "Lena Maria Lead",
      budgetMin: "425000",
      budgetMax: 500000,
      preferredLanguage: "fr",
      preapproved: true,
      doNotContact: true,
      origin: "WEB_FORM",
    };
    const data = await world.owen.get(
      `mutation ($input: CreateLeadInput!) { createLead(input: $input) { ${Object.keys(input).join(" ")} } }`,
      { input: { projectId: world.project.id, name: "L. Lead", ...input } },
    );
    expect(data.createLead).toEqual({ ...input, budgetMin: "425000.00", budgetMax: "500000.00" });
    const refusal = await world.owen.refused(
      `mutation { createLead(input: { projectId: "${world.project.id}", name: "X", budgetMin: 2, budgetMax: 1 }) { id } }`,
    );
    expect(refusal).toMatchObject({ code: "BAD_USER_INPUT" });
  });

  test("a name is split for greetings", async () => {
    const names: [name: string, first: string | null, last: string | null][] = [
      ["Bo Larsen", "Bo", "Larsen"],
      ["Bo", "Bo", null],
      ["  Mary  Ann Smith ", "Mary Ann", "Smith"],
      ["Dr. Bo Larsen, Jr.", "Bo", "Larsen"],
      ["Mr. Larsen", null, "Larsen"],
      ["Mr. & Mrs. Larsen", null, "Larsen"],
      ["Bo & Ann Larsen", "Bo & Ann", "Larsen"],
      ["Bo Larsen and Ann Smith", "Bo and Ann", null],
      ["Larsen, Bo", "Bo", "Larsen"],
      ["Ludwig van Beethoven", "Ludwig", "van Beethoven"],
      ["Maria De La Cruz", "Maria", "De La Cruz"],
      ["Leonardo da Vinci", "Leonardo", "da Vinci"],
      ["Ben Le", "Ben", "Le"],
      ["José Ortega y Gasset", "José", "Ortega y Gasset"],
      ["Juan Carlos García López", "Juan Carlos", "García López"],
      ["Jean-Luc D'Arcy", "Jean-Luc", "D'Arcy"],
      ["Robert (Bob) Smith", "Robert", "Smith"],
      ["J. R. R. Tolkien", "J. R. R.", "Tolkien"],
      ["Иванов Иван Иванович", "Иван", "Иванов"],
      ["Анна Петровна Смирнова", "Анна", "Смирнова"],
      ["محمد بن سلمان", "محمد", "بن سلمان"],
      ["عبد الله الأحمد", "عبد الله", "الأحمد"],
      ["Νίκος Παπαδόπουλος", "Νίκος", "Παπαδόπουλος"],
      ["राम शर्मा", "राम", "शर्मा"],
      ["王小明", null, null],
      ["山田 太郎", null, null],
      ["김 민수", null, null],
      ["Larsen Holdings Ltd", null, null],
      ["see https://win.example now", null, null],
    ];
    const made = await Promise.all(
      names.map(async ([name]) => {
        const { createLead: lead } = await world.owen.get(
          `mutation ($input: CreateLeadInput!) { createLead(input: $input) { firstName lastName } }`,
          { input: { projectId: world.project.id, name } },
        );
        return [name, lead.firstName, lead.lastName];
      }),
    );
    expect(made).toEqual(names);
  });

  test("given name parts are kept; derived ones follow the name", async () => {
    const named = `mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { firstName lastName } }`;
    const lead = await create({ name: "Bo Larsen" });
    const change = async (input: object) =>
      (await world.owen.get(named, { input: { id: lead.id, ...input } })).updateLead;
    expect(await change({ name: "Bo Berg" })).toEqual({ firstName: "Bo", lastName: "Berg" });
    expect(await change({ firstName: "Bob" })).toEqual({ firstName: "Bob", lastName: "Berg" });
    expect(await change({ name: "Robert Stone" })).toEqual({ firstName: "Bob", lastName: "Berg" });
    expect(await change({ firstName: null, lastName: null })).toEqual({ firstName: null, lastName: null });
  });

  test("a source is found by code or name; for an unknown one, the refusal lists the sources", async () => {
    const { createLeadSource } = await world.owen.get(
      `mutation { createLeadSource(input: { projectId: "${world.project.id}", name: "Spring fair", code: "FAIR_26", category: EVENT }) { id } }`,
    );
    const made = (person: Person, source: string, project = world.project.id) =>
      person.ask(
        `mutation ($input: CreateLeadInput!) { createLead(input: $input) { source leadSource { id } } }`,
        { input: { projectId: project, name: "From somewhere", source } },
      );
    for (const source of ["fair_26", " Spring FAIR "])
      expect((await made(world.owen, source)).data.createLead).toEqual({
        source: "FAIR_26",
        leadSource: createLeadSource,
      });
    const unknown = await made(world.max, "Autumn fair");
    expect(unknown.errors![0]!.extensions).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "source",
      allowed: expect.arrayContaining(["FAIR_26", "WALK_IN"]),
    });
    expect(unknown.errors![0]!.message).toMatch(/no lead source Autumn fair.*FAIR_26.*createLeadSource/);
    // A viewer who cannot create leads does not learn the sources, not even of a public project.
    for (const project of [world.project.id, world.park.id]) {
      const [refusal] = (await made(world.olga, "Autumn fair", project)).errors!;
      expect(["FORBIDDEN", "NOT_FOUND"]).toContain(refusal!.extensions.code);
      expect(refusal!.extensions).not.toHaveProperty("allowed");
    }
    // The contact form accepts any source, so that no lead is lost.
    const contact = await world.anonymous.get(
      `mutation { contactProject(input: { projectId: "${world.park.id}", name: "Fay Form", email: "fay@form.example", source: "spring-2031" }) { lead { id } } }`,
    );
    expect(contact.contactProject.lead).toBeNull();
    const { leads } = await world.owen.get(
      `{ leads(filter: { email: "fay@form.example" }) { source leadSource { id } firstName } }`,
    );
    expect(leads).toEqual([{ source: "spring-2031", leadSource: null, firstName: "Fay" }]);
  });
});

describe("a partial update", () => {
  test("changes given fields, clears null ones, and keeps the others", async () => {
    const lead = await create({
      company: "Old",
      email: "part@ial.example",
      tags: ["a"],
      address: { thoroughfare: "1 Main", locality: "Toronto" },
    });
    const changed = await update({
      id: lead.id,
      company: null,
      firstName: "Lena",
      address: { postalCode: "M5V" },
    });
    expect(changed).toEqual({
      ...lead,
      company: null,
      firstName: "Lena",
      address: { thoroughfare: "1 Main", locality: "Toronto", postalCode: "M5V", country: "CA" },
      version: 2,
      updatedAt: expect.any(String),
    });
    const cleared = await update({
      id: lead.id,
      address: { thoroughfare: null, locality: " " },
      email: null,
    });
    expect(cleared).toMatchObject({
      email: null,
      address: { thoroughfare: null, locality: null, postalCode: "M5V", country: "CA" },
    });
    expect((await update({ id: lead.id, address: null })).address).toBeNull();
  });

  test("without a difference changes nothing", async () => {
    const lead = await create({ company: "Same", tags: ["x"] });
    await expectUnchanged(world, async () => {
      expect(await update({ id: lead.id })).toEqual(lead);
      expect(await update({ id: lead.id, company: "Same", tags: ["x"], expectedVersion: 1 })).toEqual(lead);
    });
  });

  test("stores amounts with the digits of the currency", async () => {
    const lead = await create({});
    expect(await update({ id: lead.id, budgetMin: 425000, budgetMax: "500000.5" })).toMatchObject({
      budgetMin: "425000.00",
      budgetMax: "500000.50",
    });
  });

  test("agent: null removes the agent; if omitted, it is unchanged", async () => {
    const lead = await create({ agent: { name: "Off", email: "off@agent.example" } });
    expect((await update({ id: lead.id, company: "x" })).agent.name).toBe("Off");
    expect((await update({ id: lead.id, agent: null })).agent).toBeNull();
  });

  test("of two with the same expectedVersion, one succeeds", async () => {
    const lead = await create({});
    const answers = await Promise.all(
      ["one", "two", "three", "four"].map((company) =>
        world.owen.ask(`mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { company } }`, {
          input: { id: lead.id, company, expectedVersion: 1 },
        }),
      ),
    );
    const winners = answers.filter((answer) => !answer.errors);
    expect(winners).toHaveLength(1);
    for (const answer of answers.filter((a) => a.errors))
      expect(answer.errors![0]!.extensions).toMatchObject({ code: "VERSION_MISMATCH", currentVersion: 2 });
    expect((await read(lead.id)).company).toBe(winners[0]!.data.updateLead.company);
  });
});

describe("states", () => {
  const open = ["NEW", "CONTACTED", "COLD", "WARM", "HOT", "NEGOTIATING", "RESERVED"];
  const all = [...open, "CONVERTED", "LOST", "UNQUALIFIED"];
  const allowed = (from: string, to: string) =>
    from !== to &&
    ((open.includes(from) && (open.includes(to) || to === "LOST" || to === "UNQUALIFIED")) ||
      ((from === "LOST" || from === "UNQUALIFIED") && open.includes(to)));

  test.each(all)("from %s: the listed transitions succeed, all others are refused", async (from) => {
    const tryStep = async (to: string) => {
      const { id } = await createLead(world.owen, { projectId: world.project.id, name: "Lena Lead" });
      // As the service, which may make every transition.
      const steps = from === "NEW" ? [] : [from];
      for (const status of steps) {
        const client = await world.owner.connect();
        try {
          await client.query("begin; set local plat.service = 'on'");
          await client.query(
            "update app_public.leads set status = $2::text, fallout_reason_id = case when $2::text = 'LOST' then $3::uuid end where id = $1",
            [id, status, reason],
          );
          if (status === "CONVERTED")
            await client.query(
              "insert into app_public.buyers (project_id, lead_id, price) values ($1, $2, 1)",
              [world.project.id, id],
            );
          await client.query("commit");
        } finally {
          client.release();
        }
      }
      const { lead: now } = await world.owen.get(
        "query ($id: ID!) { lead(id: $id) { allowedTransitions { to } } }",
        { id },
      );
      expect(now.allowedTransitions.map((t: any) => t.to)).toEqual(
        all.filter((state) => allowed(from, state)).sort(),
      );
      const passes = from === to || allowed(from, to);
      const answer = await world.owen.ask(
        `mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { status } }`,
        { input: { id, status: to, falloutReasonId: reason } },
      );
      expect(answer.errors?.[0]?.extensions ?? answer.data.updateLead).toMatchObject(
        passes
          ? { status: to }
          : {
              code: "INVALID_TRANSITION",
              from,
              to,
              allowedTransitions: now.allowedTransitions.map((t: any) => t.to),
            },
      );
    };
    for (let at = 0; at < all.length; at += 5) await Promise.all(all.slice(at, at + 5).map(tryStep));
  });

  test.each(all)("whether a lead can be created as %s", async (status) => {
    const answer = await world.owen.ask(
      `mutation ($input: CreateLeadInput!) { createLead(input: $input) { status } }`,
      {
        input: { projectId: world.project.id, name: "Beginner", status },
      },
    );
    const begins = ["NEW", "CONTACTED", "COLD", "WARM", "HOT"].includes(status);
    expect(answer.errors?.[0]?.extensions.code ?? answer.data.createLead.status).toBe(
      begins ? status : "INVALID_TRANSITION",
    );
  });

  test("LOST requires a reason, which allowedTransitions reports", async () => {
    const lead = await create({});
    const step = (l: any) => l.allowedTransitions.find((t: any) => t.to === "LOST");
    expect(step(lead)).toEqual({ to: "LOST", allowed: false, blockedBy: ["falloutReasonId"] });
    const lost = await update({
      id: lead.id,
      status: "LOST",
      falloutReasonId: reason,
      falloutNote: "Too dear.",
    });
    expect(lost).toMatchObject({ status: "LOST", falloutReason: { id: reason }, lostAt: expect.any(String) });
    expect(lost.statusChangedAt > lead.statusChangedAt).toBe(true);
    const back = await update({ id: lead.id, status: "WARM" });
    expect(back).toMatchObject({ status: "WARM", lostAt: null });
    const refusal = await world.owen.refused(
      `mutation { updateLead(input: { id: "${lost.id}", status: LOST, falloutReasonId: null }) { id } }`,
    );
    expect(refusal).toMatchObject({ code: "BAD_USER_INPUT", field: "falloutReasonId" });
  });

  test("a lost lead keeps its reason", async () => {
    const { id } = await create({});
    await update({ id, status: "LOST", falloutReasonId: reason });
    const refusal = await world.owen.refused(
      `mutation { updateLead(input: { id: "${id}", falloutReasonId: null }) { id } }`,
    );
    expect(refusal).toMatchObject({ code: "BAD_USER_INPUT", field: "falloutReasonId" });
  });

  test("CONTACTED records the first response, once", async () => {
    const { id } = await create({});
    const first = (await update({ id, status: "CONTACTED" })).firstResponseAt;
    expect(first).toEqual(expect.any(String));
    await update({ id, status: "COLD" });
    expect((await update({ id, status: "CONTACTED" })).firstResponseAt).toBe(first);
  });
});

describe("events", () => {
  test("contain who changed what, the source, and the record after the change", async () => {
    const lead = await create({ company: "One", tags: ["a"] });
    const answer = await world.max.ask(
      `mutation { updateLead(input: { id: "${lead.id}", company: "Two", tags: ["a", "b"], status: HOT, budgetMin: 1 }) { version } }`,
    );
    const [changed, created] = await eventsOf(lead.id);
    expect(created).toMatchObject({
      name: "lead.created",
      changes: null,
      data: { id: lead.id, name: "Lena Lead", company: "One", status: "NEW", projectId: world.project.id },
      actor: { id: world.owen.id },
      actorType: "USER",
      channel: "API",
      subject: { __typename: "Lead", id: lead.id },
      organization: { id: world.harbour.id },
      project: { id: world.project.id },
    });
    expect(changed).toMatchObject({
      name: "lead.status_changed",
      actor: { id: world.max.id },
      requestId: answer.headers["x-request-id"],
      changes: {
        company: ["One", "Two"],
        tags: [["a"], ["a", "b"]],
        status: ["NEW", "HOT"],
        budgetMin: [null, "1.00"],
      },
      data: { company: "Two", status: "HOT", budgetMin: "1.00" },
    });
    expect(Object.keys(changed.changes).sort()).toEqual([
      "budgetMin",
      "company",
      "status",
      "statusChangedAt",
      "tags",
    ]);
    expect(changed.data).not.toHaveProperty("searchText");
    expect(BigInt(changed.sequence)).toBe(BigInt(created.sequence) + 1n);
  });

  test("distinguishes programs from users", async () => {
    const lead = await create({}, await programOf(world, world.owen, {}));
    expect((await eventsOf(lead.id))[0]).toMatchObject({
      actorType: "ACCESS_TOKEN",
      actor: { id: world.owen.id },
    });
  });

  test("deleting a lead writes one, which auditors can still read", async () => {
    const { id } = await create({});
    await world.max.get(`mutation { deleteLead(input: { id: "${id}" }) { id } }`);
    const query = `{ events(filter: { subjectId: "${id}" }) { name subject { __typename } } }`;
    expect((await world.ada.get(query)).events).toEqual([
      { name: "lead.created", subject: null },
      { name: "lead.deleted", subject: null },
    ]);
    expect((await world.max.get(query)).events).toEqual([]);
  });

  test("50 concurrent writers produce a sequence without gaps per organization", async () => {
    await Promise.all(
      Array.from({ length: 50 }, (_, i) => {
        const [person, project] = i % 5 === 0 ? [world.olga, world.peak] : [world.owen, world.project];
        return person.get(`mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }`, {
          input: {
            projectId: project.id,
            name: `Writer ${i}`,
            email: `writer${i}@example.com`,
            agent: { name: "W", email: "w@agent.example" },
          },
        });
      }),
    );
    const { rows } = await world.owner.query(
      `select organization_id, count(*)::int as amount, min(sequence)::int as low, max(sequence)::int as high, count(distinct sequence)::int as different
       from app_public.events where organization_id is not null group by 1`,
    );
    expect(rows.length).toBeGreaterThan(3);
    for (const row of rows) expect(row).toMatchObject({ low: 1, high: row.amount, different: row.amount });
    const {
      rows: [open],
    } = await world.owner.query(
      "select (select count(*) from app_public.events where sequence is null)::int as unnumbered, (select count(*) from app_private.pending_events)::int as pending, (select count(*) from app_private.event_batches)::int as batches",
    );
    expect(open).toEqual({ unnumbered: 0, pending: 0, batches: 0 });
    // Events can be read in that order, from any position.
    const feed = async (after: string) =>
      (
        await world.owen.get(
          `{ eventsConnection(first: 20, filter: { organizationId: "${world.harbour.slug}", afterSequence: "${after}" }) { nodes { sequence } } }`,
        )
      ).eventsConnection.nodes.map((e: any) => Number(e.sequence));
    expect(await feed("10")).toEqual(Array.from({ length: 20 }, (_, i) => i + 11));
  });

  test("a refused mutation writes no event; a request with several fields writes one for each success", async () => {
    const { id } = await create({});
    const answer = await world.owen.ask(
      `mutation { a: updateLead(input: { id: "${id}", company: "A" }) { id } b: updateLead(input: { id: "${id}", status: CONVERTED }) { id }
        c: updateLead(input: { id: "${id}", company: "C" }) { id } }`,
    );
    expect(answer.errors).toHaveLength(1);
    expect(answer.errors![0]!.path).toEqual(["b"]);
    expect((await eventsOf(id)).map((e) => e.changes?.company ?? e.name)).toEqual([
      ["A", "C"],
      [null, "A"],
      "lead.created",
    ]);
  });
});

describe("deleting", () => {
  test("deletes the notes of a lead; its email address can be used again", async () => {
    const lead = await create({ email: "gone@example.com" });
    const { createLeadNote } = await world.owen.get(
      `mutation { createLeadNote(input: { leadId: "${lead.id}", text: "Hm." }) { id } }`,
    );
    const { deleteLead } = await world.owen.get(
      `mutation { deleteLead(input: { id: "${lead.id}" }) { id deleted project { id } } }`,
    );
    expect(deleteLead).toEqual({ id: lead.id, deleted: true, project: { id: world.project.id } });
    const data = await world.owen
      .get(`{ lead(id: "${lead.id}") { id } leadNote(id: "${createLeadNote.id}") { id }
      leads(filter: { email: "gone@example.com" }) { id } }`);
    expect(data).toEqual({ lead: null, leadNote: null, leads: [] });
    for (const text of [
      `updateLead(input: { id: "${lead.id}", name: "X" })`,
      `deleteLead(input: { id: "${lead.id}" })`,
      `updateLeadNote(input: { id: "${createLeadNote.id}", text: "X" })`,
    ])
      expect((await world.owen.refused(`mutation { ${text} { id } }`)).code).toBe("NOT_FOUND");
    expect((await create({ email: "gone@example.com" })).id).not.toBe(lead.id);
  });
});

describe("notes", () => {
  test("have their author and the time of the last change", async () => {
    const { id } = await create({});
    const note = (
      await world.max.get(
        `mutation { createLeadNote(input: { leadId: "${id}", text: " Called. " }) { id text pinned visibility editedAt author { id } lead { id } version } }`,
      )
    ).createLeadNote;
    expect(note).toMatchObject({
      text: "Called.",
      pinned: false,
      visibility: "TEAM",
      editedAt: null,
      author: { id: world.max.id },
      lead: { id },
      version: 1,
    });
    const pin = `mutation ($input: UpdateLeadNoteInput!) { updateLeadNote(input: $input) { pinned editedAt version author { id } } }`;
    const pinned = (await world.ada.get(pin, { input: { id: note.id, pinned: true } })).updateLeadNote;
    expect(pinned).toEqual({ pinned: true, editedAt: null, version: 2, author: { id: world.max.id } });
    const edited = (
      await world.max.get(pin, { input: { id: note.id, text: "Called twice.", expectedVersion: 2 } })
    ).updateLeadNote;
    expect(edited).toMatchObject({ editedAt: expect.any(String), version: 3 });
  });
});
