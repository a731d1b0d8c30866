import type { Person } from "./api.ts";
import type { HostOptions } from "./host.ts";
import type { TestDatabase } from "./database.ts";
import { createIn, mutationOf } from "./records.ts";
import { affiliate, createProject, join, startWorld, type World } from "./world.ts";

export { createProject } from "./world.ts";

/** A record that was created by the set-up. */
export interface Fixture {
  id: string;
}

/** The world with a person of each role in its projects, and leads of several of them. */
export interface Portfolio extends World {
  /** A second MEMBER of Harbour Homes. */
  mia: Person;
  /** MEMBER of Seller Sisters, affiliated with `project` as SELLER. */
  sam: Person;
  /** MEMBER of Brick Builders, affiliated with `project` as BUILDER. */
  bob: Person;
  sisters: { id: string; slug: string };
  brick: { id: string; slug: string };
  /** A project of Harbour Homes whose members see their own leads only. */
  quiet: { id: string; slug: string };
  /** A public project of Harbour Homes. */
  park: { id: string; slug: string };
  /** A private project of Summit Sales, with a lead. */
  peak: { id: string; slug: string };
  leads: {
    /** In `project`, assigned to nobody. */
    open: Fixture;
    /** In `project`, assigned to sam. */
    sams: Fixture;
    /** In `quiet`, assigned to max. */
    maxs: Fixture;
    /** In `quiet`, assigned to mia. */
    mias: Fixture;
    /** In `peak`, of another organization. */
    foreign: Fixture;
  };
}

/** Everybody by their role in `project`, and the given buyers: the columns of tables of permissions. */
export function cast(world: Portfolio, buyers: Record<string, Person> = {}): Record<string, Person> {
  const { owen, ada, max, sam, bob, olga, anonymous } = world;
  return {
    owner: owen,
    admin: ada,
    member: max,
    seller: sam,
    builder: bob,
    ...buyers,
    outsider: olga,
    anonymous,
  };
}

/** Creates a lead over the API and returns its id. */
export async function createLead(person: Person, input: Record<string, unknown>): Promise<Fixture> {
  return { id: await createIn(person)("createLead", input) };
}

/** A new organization of another owner, with `person` as a MEMBER, affiliated with the project. */
async function partner(world: World, person: Person, name: string, role: string) {
  const founder = await world.signUp(`${name} Founder`);
  const { createOrganization: organization } = await founder.get(
    mutationOf("createOrganization", "{ id slug }"),
    { input: { name } },
  );
  await join(world, organization.id, person, "MEMBER");
  await affiliate(world, world.project, organization, role);
  return organization as { id: string; slug: string };
}

export async function startPortfolio(from?: TestDatabase, options?: HostOptions): Promise<Portfolio> {
  const world = await startWorld(from, options);
  const [mia, sam, bob] = (await Promise.all(
    ["Mia Member", "Sam Seller", "Bob Builder"].map(world.signUp),
  )) as [Person, Person, Person];
  await join(world, world.harbour.id, mia, "MEMBER");
  const sisters = await partner(world, sam, "Seller Sisters", "SELLER");
  const brick = await partner(world, bob, "Brick Builders", "BUILDER");
  const { owen, olga, max, harbour, summit, project } = world;
  const quiet = await createProject(owen, {
    organizationId: harbour.id,
    title: "Quiet Quay",
    leadAssignment: "PRIVATE",
  });
  const park = await createProject(owen, {
    organizationId: harbour.id,
    title: "Public Park",
    visibility: "PUBLIC",
    metadata: { margin: 12 },
    address: { locality: "Hamilton", country: "CA" },
  });
  const peak = await createProject(olga, { organizationId: summit.id, title: "Summit Peak" });
  const leads = {
    open: await createLead(owen, { projectId: project.id, name: "Open Ollie", email: "open@example.com" }),
    sams: await createLead(sam, { projectId: project.id, name: "Sams Sally", email: "sams@example.com" }),
    maxs: await createLead(max, { projectId: quiet.id, name: "Maxs Molly", email: "maxs@example.com" }),
    mias: await createLead(mia, { projectId: quiet.id, name: "Mias Manny", email: "mias@example.com" }),
    foreign: await createLead(olga, { projectId: peak.id, name: "Foreign Fay", email: "fay@example.com" }),
  };
  return { ...world, mia, sam, bob, sisters, brick, quiet, park, peak, leads };
}
