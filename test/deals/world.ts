import type { Person } from "../harness/api.ts";
import { createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn, type Create } from "../harness/records.ts";

/** A project with few homes and many buyers. */
export interface Deals extends Portfolio {
  create: Create;
  /** Homes for sale, and their possible buyers. */
  stock: { units: string[]; lots: string[]; leads: string[] };
  options: string[];
  falloutReason: string;
  /** The players: the team, an agency with own leads, and users of other organizations. */
  players: (Person | Person[])[];
  /** Adds new homes and leads, which replace those already sold. */
  restock(): Promise<void>;
}

/** @param amount number of units; half of them have their own lot, and some lots have no unit */
export async function startDeals(amount = 4): Promise<Deals> {
  const world = await startPortfolio();
  const create = createIn(world.owen);
  const projectId = world.project.id;
  const stock = { units: [] as string[], lots: [] as string[], leads: [] as string[] };
  let round = 0;
  const restock = async () => {
    round += 1;
    const lot = (number: string, input = {}) =>
      create("createLot", {
        projectId,
        number: `${number} ${round}`,
        status: "AVAILABLE",
        price: "90000",
        ...input,
      });
    const lots = await Promise.all([lot("L1"), lot("L2"), lot("L3", { multiUnit: true })]);
    const units = await Promise.all(
      Array.from({ length: amount }, (_, i) => {
        const lotId = [lots[0], lots[2], lots[2]][i];
        return create("createUnit", {
          projectId,
          title: `Home ${i}`,
          number: `${round}-${i}`,
          status: "AVAILABLE",
          price: `${400_000 + i}.99`,
          ...(lotId && { lotId }),
        });
      }),
    );
    const leads = await Promise.all(
      Array.from({ length: amount + 2 }, async (_, i) => {
        // The agency adds leads of its own; some are assigned to a member, some to nobody.
        const [by, assigneeId] = [
          [world.sam, undefined],
          [world.owen, world.max.id],
          [world.owen, undefined],
        ][i % 3] as [Person, string | undefined];
        const input = { projectId, name: `Lead ${i}`, email: `lead${i}.${round}@example.com` };
        return (await createLead(by, { ...input, ...(assigneeId && { assigneeId }) })).id;
      }),
    );
    Object.assign(stock, { units, lots, leads });
  };
  const categoryId = await create("createSpecCategory", { projectId, title: "Kitchen" });
  const options: string[] = [];
  for (let i = 0; i < 3; i++) {
    const elementId = await create("createSpecElement", { categoryId, title: `Element ${i}` });
    options.push(
      await create("createSpecOption", {
        elementId,
        title: `Option ${i}`,
        price: `${100 * i + 33}.33`,
        tier: "UPGRADE",
      }),
    );
  }
  const { project } = await world.owen.get(
    `query ($id: ID!) { project(id: $id) { falloutReasons { id } } }`,
    { id: projectId },
  );
  return {
    ...world,
    create,
    restock,
    stock,
    options,
    falloutReason: project.falloutReasons[0].id,
    players: [
      world.owen,
      world.ada,
      world.max,
      world.mia,
      world.sam,
      world.owen,
      world.max,
      world.sam,
      world.ada,
      [world.bob, world.olga, world.anonymous],
    ],
  };
}
