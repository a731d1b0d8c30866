import { startApi, type Api, type Person } from "./api.ts";
import type { TestDatabase } from "./database.ts";
import type { HostOptions } from "./host.ts";
import { mutationOf } from "./records.ts";

/** Two organizations with their members and a project, created over the API. */
export interface World extends Api {
  /** OWNER of Harbour Homes. */
  owen: Person;
  /** ADMIN there. */
  ada: Person;
  /** MEMBER there. */
  max: Person;
  /** OWNER of another organization, Summit Sales. */
  olga: Person;
  harbour: { id: string; slug: string };
  summit: { id: string; slug: string };
  /** A private project of Harbour Homes. */
  project: { id: string; slug: string };
}

/** Adds a user to an organization; invitation by mail has its own tests. */
export async function join(api: Api, organizationId: string, person: Person, role: string): Promise<void> {
  await api.owner.query(
    "insert into app_public.organization_user_connections (organization_id, user_id, role) values ($1, $2, $3)",
    [organizationId, person.id, role],
  );
}

/** Affiliates an organization with a project in a role. */
export async function affiliate(
  api: Api,
  project: { id: string },
  organization: { id: string },
  role: string,
): Promise<void> {
  await api.owner.query(
    `insert into app_public.project_organizations (project_id, owner_id, organization_id, role)
     select p.id, p.organization_id, $2, $3 from app_public.projects p where p.id = $1`,
    [project.id, organization.id, role],
  );
}

/** Creates a project over the API and returns its id and slug. */
export async function createProject(
  person: Person,
  input: Record<string, unknown>,
): Promise<{ id: string; slug: string }> {
  const data = await person.get(mutationOf("createProject", "{ id slug }"), {
    input: { status: "SELLING", currency: "CAD", ...input },
  });
  return data.createProject;
}

/** A program with an access token of the person, with these scopes or other input. */
export async function programOf(api: Api, person: Person, input: Record<string, unknown>): Promise<Person> {
  const { createAccessToken } = await person.get(mutationOf("createAccessToken", "{ token }"), {
    input: { name: "Robot", ...input },
  });
  return api.person(createAccessToken.token);
}

/** @param from a database with further contents. Default: a new one. */
export async function startWorld(from?: TestDatabase, options?: HostOptions): Promise<World> {
  const api = await startApi(from, options);
  const [owen, ada, max, olga] = await Promise.all(
    ["Owen Owner", "Ada Admin", "Max Member", "Olga Other"].map(api.signUp),
  );
  const createOrganization = async (person: Person, name: string) =>
    (await person.get(mutationOf("createOrganization", "{ id slug }"), { input: { name } }))
      .createOrganization;
  const harbour = await createOrganization(owen!, "Harbour Homes");
  const summit = await createOrganization(olga!, "Summit Sales");
  await join(api, harbour.id, ada!, "ADMIN");
  await join(api, harbour.id, max!, "MEMBER");
  const project = await createProject(owen!, {
    organizationId: harbour.id,
    title: "Harbour View",
    address: { locality: "Toronto", country: "CA" },
  });
  return { ...api, owen: owen!, ada: ada!, max: max!, olga: olga!, harbour, summit, project };
}
