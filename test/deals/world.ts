import type { Person } from "../harness/api.ts";
import { createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn, type Create } from "../harness/records.ts";

/** A project with few homes and many who want them. */
export interface Deals extends Portfolio {
  create: Create;
  /** What is for sale, and who may buy it. */
  stock: { units: string[]; lots: string[]; leads: string[] };
  options: string[];
  falloutReason: string;
  /** Whoever takes part: the team, an agency with own leads, and strangers. */
  players: (Person | Person[])[];
  /** Brings in new homes and new leads, in place of those that are sold by now. */
  restock(): Promise<void>;
}

/** @param amount how many units there are; half of them on a lot of their own, and some lots have no unit. */
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
        // The agency brings leads of its own; some belong to a member, some to nobody.
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
