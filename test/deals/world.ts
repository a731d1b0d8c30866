import type { Person } from "../harness/api.ts";
import { createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn, type Create } from "../harness/records.ts";

/** A project with few homes and many who want them. */
export interface Deals extends Portfolio {
  create: Create;
  units: string[];
  lots: string[];
  leads: Portfolio["leads"] & string[];
  options: string[];
  falloutReason: string;
  /** Whoever takes part: the team, an agency with own leads, and strangers. */
  players: Person[];
}

/** @param amount how many units there are; half of them on a lot of their own, and some lots have no unit. */
export async function startDeals(amount = 4): Promise<Deals> {
  const world = await startPortfolio();
  const create = createIn(world.owen);
  const projectId = world.project.id;
  const lot = (number: string, input = {}) =>
    create("createLot", { projectId, number, status: "AVAILABLE", price: "90000", ...input });
  const lots = [await lot("L1"), await lot("L2"), await lot("L3", { multiUnit: true })];
  const units: string[] = [];
  for (let i = 0; i < amount; i++) {
    const lotId = [lots[0], lots[2], lots[2]][i];
    units.push(
      await create("createUnit", {
        projectId,
        title: `Home ${i}`,
        number: `${i}`,
        status: "AVAILABLE",
        price: `${400_000 + i}.99`,
        ...(lotId && { lotId }),
      }),
    );
  }
  const leads: string[] = [];
  for (let i = 0; i < amount + 2; i++) {
    const assigneeId = [world.sam.id, world.max.id, undefined][i % 3];
    leads.push(
      (
        await createLead(world.owen, {
          projectId,
          name: `Lead ${i}`,
          email: `lead${i}@example.com`,
          ...(assigneeId && { assigneeId }),
        })
      ).id,
    );
  }
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
    units,
    lots,
    leads: Object.assign(leads, world.leads),
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
      world.bob,
      world.olga,
      world.anonymous,
    ],
  };
}
