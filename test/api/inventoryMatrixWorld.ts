/**
 * The records of the permission matrix of inventory, catalogue and files, with operations that create, change and
 * delete one of each type. They belong to Harbour View, with which the seller's and the builder's organizations are
 * affiliated.
 */
import type { Answer, Person } from "../harness/api.ts";
import { cast, type Portfolio, startPortfolio } from "../harness/portfolio.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { picture } from "../harness/upload.ts";

export type Input = Record<string, unknown>;

export interface Kind {
  /** Input that creates another one. */
  create(): Input;
  /** Input that changes one. */
  change(): Input;
}

export interface MatrixWorld extends Portfolio {
  people: Record<string, Person>;
  /** Inputs for one record of each type, by the name of the type in operations. */
  kinds: Record<string, Kind>;
  /** By their names in the tables: the type, or the type with its variant. */
  records: Record<string, { finder: string; type: string; id: string }>;
  /** Executes an operation as the person. */
  tries(person: Person, field: string, input: Input): Promise<Answer>;
  /** Creates a record as the owner. */
  make(type: string, more?: Input): Promise<string>;
  setVisibility(visibility: "PRIVATE" | "PUBLIC"): Promise<void>;
}

export const isFile = (type: string): boolean => /Image|Document|Drawing|Avatar|SitePlan/.test(type);
export const creates = (type: string): string => `${isFile(type) ? "upload" : "create"}${type}`;
const soon = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();

export async function startMatrixWorld(): Promise<MatrixWorld> {
  const world = await startPortfolio();
  const { owen, max, project, harbour } = world;
  const file = `data:;base64,${(await picture()).toString("base64")}`;
  let serial = 0;
  const name = () => `Name ${++serial}`;
  const parents: Record<string, string> = {};
  const own = { projectId: project.id };
  const sold = { status: "AVAILABLE", price: 1000 };
  const changes = { description: () => ({ description: name() }), title: () => ({ title: name() }) };
  const image = (parent: () => Input): Kind => ({
    create: () => ({ ...parent(), file, alt: "A" }),
    change: () => ({ alt: name() }),
  });
  const document = (parent: () => Input): Kind => ({
    create: () => ({ ...parent(), file, description: "A" }),
    change: changes.description,
  });
  const plan = () => ({ floorPlanId: parents.FloorPlan });
  const kinds: Record<string, Kind> = {
    FloorPlan: {
      create: () => ({ ...own, title: name(), status: "ACTIVE", metadata: { a: 1 } }),
      change: changes.title,
    },
    Lot: {
      create: () => ({ ...own, number: name(), ...sold, premium: 5, metadata: { a: 1 } }),
      change: () => ({ phase: name() }),
    },
    Unit: {
      create: () => ({
        ...own,
        title: name(),
        number: name(),
        ...sold,
        sqft: 100,
        estimatedDeliveryDate: "2030-07-19",
        metadata: { a: 1 },
      }),
      change: () => ({ phase: name() }),
    },
    SpecCategory: { create: () => ({ ...own, title: name() }), change: changes.title },
    SpecElement: {
      create: () => ({ categoryId: parents.SpecCategory, title: name() }),
      change: changes.title,
    },
    SpecOption: {
      create: () => ({ elementId: parents.SpecElement, title: name(), tier: "STANDARD", price: 9, cost: 7 }),
      change: () => ({ cost: ++serial }),
    },
    OpenHouse: {
      create: () => ({ ...own, startsAt: soon(1), endsAt: soon(2) }),
      change: changes.title,
    },
    Promotion: {
      create: () => ({ ...own, title: name(), kind: "GIFT", startsAt: soon(-1) }),
      change: changes.title,
    },
    ProjectTestimonial: {
      create: () => ({ ...own, author: name(), text: "Good.", published: true }),
      change: () => ({ text: name() }),
    },
    ProjectCollection: {
      create: () => ({ organizationId: harbour.id, title: name(), public: true, projectIds: [project.id] }),
      change: changes.title,
    },
    Tracker: { create: () => ({ ...own, name: name(), kind: "LINK" }), change: () => ({ name: name() }) },
    LeasePermit: { create: () => ({ ...own, title: name() }), change: changes.title },
    DepositScheduleMilestone: {
      create: () => ({ ...own, title: name(), percent: 5 }),
      change: changes.title,
    },
    OrganizationAvatar: image(() => ({ organizationId: harbour.id })),
    ProjectAvatar: image(() => own),
    ProjectImage: image(() => own),
    SitePlan: image(() => own),
    FloorPlanImage: image(plan),
    ElevationImage: image(plan),
    FloorPlanDrawing: image(plan),
    LotImage: image(() => ({ lotId: parents.Lot })),
    UnitImage: image(() => ({ unitId: parents.Unit })),
    ProjectDocument: document(() => own),
    FloorPlanDocument: document(plan),
  };

  const create = createIn(owen);
  const make = (type: string, more: Input = {}) =>
    create(creates(type), { ...kinds[type]!.create(), ...more });
  const records: MatrixWorld["records"] = {};
  const keep = (label: string, type: string, id: string) => {
    const served = type === "ElevationImage" ? "FloorPlanElevationImage" : type;
    records[label] = { type: served, finder: served[0]!.toLowerCase() + served.slice(1), id };
    return id;
  };
  for (const type of ["FloorPlan", "Lot"]) parents[type] = keep(type, type, await make(type));
  parents.Unit = keep("Unit", "Unit", await make("Unit", { floorPlanId: parents.FloorPlan }));
  for (const type of Object.keys(kinds))
    if (!records[type]) parents[type] = keep(type, type, await make(type));
  const more = async (label: string, type: string, input: Input) =>
    keep(label, type, await make(type, input));
  const draft = await more("FloorPlan:draft", "FloorPlan", { status: "DRAFT" });
  const hiddenLot = await more("Lot:unreleased", "Lot", { status: "UNRELEASED" });
  const hiddenUnit = await more("Unit:unreleased", "Unit", { status: "UNRELEASED" });
  await more("FloorPlanImage:ofDraft", "FloorPlanImage", { floorPlanId: draft });
  await more("ElevationImage:ofDraft", "ElevationImage", { floorPlanId: draft });
  await more("FloorPlanDrawing:ofDraft", "FloorPlanDrawing", { floorPlanId: draft });
  await more("FloorPlanDocument:publicOfDraft", "FloorPlanDocument", {
    floorPlanId: draft,
    public: true,
  });
  await more("LotImage:ofUnreleased", "LotImage", { lotId: hiddenLot });
  await more("UnitImage:ofUnreleased", "UnitImage", { unitId: hiddenUnit });
  await more("ProjectDocument:public", "ProjectDocument", { public: true });
  await more("FloorPlanDocument:public", "FloorPlanDocument", { public: true });
  await more("SpecOption:inactive", "SpecOption", { active: false });
  await more("OpenHouse:inside", "OpenHouse", { public: false });
  await more("Promotion:draft", "Promotion", { status: "DRAFT" });
  await more("Promotion:inside", "Promotion", { public: false });
  await more("Promotion:ofUnits", "Promotion", {
    appliesTo: "UNITS",
    unitIds: [parents.Unit, hiddenUnit],
  });
  await more("Promotion:ofLots", "Promotion", { appliesTo: "LOTS", lotIds: [parents.Lot, hiddenLot] });
  await more("Promotion:ofFloorPlans", "Promotion", {
    appliesTo: "FLOOR_PLANS",
    floorPlanIds: [parents.FloorPlan, draft],
  });
  await more("ProjectTestimonial:unpublished", "ProjectTestimonial", { published: false });
  await more("ProjectCollection:inside", "ProjectCollection", { public: false });
  // A sale by the service; the steps to it have tests of their own.
  for (const type of ["Unit", "Lot"]) {
    const id = await more(`${type}:sold`, type, { price: 2000 });
    await world.owner.query(
      `select app_private.set_inventory(array[app_private.take_claim($1, $2, 'PURCHASE', 'buyer', uuidv7())], 'SOLD', false, 1900)`,
      type === "Unit" ? [id, null] : [null, id],
    );
  }
  await owen.get(
    `mutation ($id: ID!, $unit: ID!, $host: ID!) {
      updateProject(input: { id: $id, metadata: { a: 1 } }) { id }
      updateOpenHouse(input: { id: "${records.OpenHouse!.id}", hostId: $host }) { id }
      updateLeasePermit(input: { id: "${records.LeasePermit!.id}", unitId: $unit }) { id } }`,
    { id: project.id, unit: parents.Unit, host: max.id },
  );
  const { updateSalesOffice: office } = await owen.get(
    `mutation ($id: ID!) { updateSalesOffice(input: { projectId: $id, title: "Pier", notes: "Code 1", email: "pier@example.com" }) { id } }`,
    project,
  );
  keep("SalesOffice", "SalesOffice", office.id);
  keep("Project", "Project", project.id);

  return {
    ...world,
    people: cast(world),
    kinds,
    records,
    tries: (person, field, input) => person.ask(mutationOf(field, "{ __typename }"), { input }),
    make,
    async setVisibility(visibility) {
      await owen.get(
        `mutation ($id: ID!, $v: ProjectVisibility!) { updateProject(input: { id: $id, visibility: $v }) { id } }`,
        { id: project.id, v: visibility },
      );
    },
  };
}
