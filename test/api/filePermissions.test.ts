/**
 * Who may do what with files, in the words of permissions.test.ts: the private project is Harbour View, with which the
 * seller's and the builder's organizations are affiliated; the public one is Public Park.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Answer, Person } from "../harness/api.ts";
import { startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { picture } from "../harness/upload.ts";

const matrix = `
                                          | owner  | admin  | member | seller    | builder   | outsider  | anonymous
uploadOrganizationAvatar                  | yes    | FORBID | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
updateOrganizationAvatar                  | yes    | FORBID | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
deleteOrganizationAvatar                  | yes    | FORBID | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
organization.avatar, with public projects | yes    | yes    | yes    | yes       | yes       | yes       | yes
organizationAvatar                        | yes    | yes    | yes    | yes       | yes       | yes       | yes
uploadProjectAvatar                       | yes    | yes    | FORBID | FORBID    | FORBID    | NOT_FOUND | UNAUTH
updateProjectAvatar                       | yes    | yes    | FORBID | FORBID    | FORBID    | NOT_FOUND | UNAUTH
deleteProjectAvatar                       | yes    | yes    | FORBID | FORBID    | FORBID    | NOT_FOUND | UNAUTH
projectAvatar                             | yes    | yes    | yes    | yes       | yes       | null      | null
uploadProjectImage                        | yes    | yes    | FORBID | FORBID    | FORBID    | NOT_FOUND | UNAUTH
uploadProjectImage, public project        | yes    | yes    | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
updateProjectImage                        | yes    | yes    | FORBID | FORBID    | FORBID    | NOT_FOUND | UNAUTH
updateProjectImage, public project        | yes    | yes    | FORBID | FORBID    | FORBID    | FORBID    | UNAUTH
deleteProjectImage                        | yes    | yes    | FORBID | FORBID    | FORBID    | NOT_FOUND | UNAUTH
projectImage                              | yes    | yes    | yes    | yes       | yes       | null      | null
projectImage, public project              | yes    | yes    | yes    | yes       | yes       | yes       | yes
uploadProjectDocument                     | yes    | yes    | FORBID | FORBID    | FORBID    | NOT_FOUND | UNAUTH
updateProjectDocument                     | yes    | yes    | FORBID | FORBID    | NOT_FOUND | NOT_FOUND | UNAUTH
deleteProjectDocument                     | yes    | yes    | FORBID | FORBID    | NOT_FOUND | NOT_FOUND | UNAUTH
projectDocument                           | yes    | yes    | yes    | yes       | null      | null      | null
projectDocument, public                   | yes    | yes    | yes    | yes       | yes       | null      | null
projectDocument, public project           | yes    | yes    | yes    | null      | null      | null      | null
projectDocument, public both              | yes    | yes    | yes    | yes       | yes       | yes       | yes
uploadSitePlan                            | yes    | yes    | FORBID | FORBID    | FORBID    | NOT_FOUND | UNAUTH
updateSitePlan                            | yes    | yes    | FORBID | FORBID    | FORBID    | NOT_FOUND | UNAUTH
deleteSitePlan                            | yes    | yes    | FORBID | FORBID    | FORBID    | NOT_FOUND | UNAUTH
sitePlan                                  | yes    | yes    | yes    | yes       | yes       | null      | null
`;

type Operation = (person: Person) => Promise<Answer>;

let world: Portfolio;
let people: Record<string, Person>;
let tried: Record<string, Operation>;
let file: string;

const mutation = (field: string, input: () => Promise<object> | object): Operation => {
  const type = `${field[0]!.toUpperCase()}${field.slice(1)}Input`;
  return async (person) =>
    person.ask(`mutation ($input: ${type}!) { ${field}(input: $input) { id } }`, { input: await input() });
};

const byId =
  (field: string, id: string): Operation =>
  (person) =>
    person.ask(`query ($id: ID!) { ${field}(id: $id) { id url } }`, { id });

/** Uploads as the owner and gives the id. */
async function made(field: string, input: object): Promise<string> {
  const answer = await mutation(field, () => ({ ...input, file }))(world.owen);
  return answer.data[field].id;
}

beforeAll(async () => {
  world = await startPortfolio();
  file = `data:;base64,${(await picture()).toString("base64")}`;
  const { owen, ada, max, sam, bob, olga, anonymous } = world;
  people = { owner: owen, admin: ada, member: max, seller: sam, builder: bob, outsider: olga, anonymous };
  const own = { projectId: world.project.id };
  const open = { projectId: world.park.id };
  const organization = { organizationId: world.harbour.id };
  const image = { own: await made("uploadProjectImage", own), open: await made("uploadProjectImage", open) };
  const document = {
    own: await made("uploadProjectDocument", own),
    ownPublic: await made("uploadProjectDocument", { ...own, public: true }),
    open: await made("uploadProjectDocument", open),
    openPublic: await made("uploadProjectDocument", { ...open, public: true }),
  };
  const plan = await made("uploadSitePlan", own);
  const upload = (type: string, input: object) => mutation(`upload${type}`, () => ({ ...input, file }));
  const update = (type: string, id: string) =>
    mutation(`update${type}`, () => ({
      id,
      [type.endsWith("Document") ? "description" : type === "SitePlan" ? "phase" : "alt"]: "New",
    }));
  const remove = (type: string, input: object) =>
    mutation(`delete${type}`, async () => ({ id: await made(`upload${type}`, input) }));
  const removeAvatar = (type: string, input: object) =>
    mutation(`delete${type}Avatar`, async () => {
      await made(`upload${type}Avatar`, input);
      return input;
    });
  // The avatars that were there first are replaced on the way, so they are looked for anew.
  const present = (
    type: string,
    input: Record<string, string>,
    then: (id: string) => Operation,
  ): Operation => {
    return async (person) => then(await made(`upload${type}Avatar`, input))(person);
  };
  tried = {
    uploadOrganizationAvatar: upload("OrganizationAvatar", organization),
    updateOrganizationAvatar: present("Organization", organization, (id) => update("OrganizationAvatar", id)),
    deleteOrganizationAvatar: removeAvatar("Organization", organization),
    "organization.avatar, with public projects": async (person) => {
      await made("uploadOrganizationAvatar", organization);
      const query = `query ($id: ID!) { organization(id: $id) { avatar { id url } } }`;
      const answer = await person.ask(query, { id: world.harbour.id });
      return { ...answer, data: answer.data.organization };
    },
    organizationAvatar: present("Organization", organization, (id) => byId("organizationAvatar", id)),
    uploadProjectAvatar: upload("ProjectAvatar", own),
    updateProjectAvatar: present("Project", own, (id) => update("ProjectAvatar", id)),
    deleteProjectAvatar: removeAvatar("Project", own),
    projectAvatar: present("Project", own, (id) => byId("projectAvatar", id)),
    uploadProjectImage: upload("ProjectImage", own),
    "uploadProjectImage, public project": upload("ProjectImage", open),
    updateProjectImage: update("ProjectImage", image.own),
    "updateProjectImage, public project": update("ProjectImage", image.open),
    deleteProjectImage: remove("ProjectImage", own),
    projectImage: byId("projectImage", image.own),
    "projectImage, public project": byId("projectImage", image.open),
    uploadProjectDocument: upload("ProjectDocument", own),
    updateProjectDocument: update("ProjectDocument", document.own),
    deleteProjectDocument: remove("ProjectDocument", own),
    projectDocument: byId("projectDocument", document.own),
    "projectDocument, public": byId("projectDocument", document.ownPublic),
    "projectDocument, public project": byId("projectDocument", document.open),
    "projectDocument, public both": byId("projectDocument", document.openPublic),
    uploadSitePlan: upload("SitePlan", own),
    updateSitePlan: update("SitePlan", plan),
    deleteSitePlan: remove("SitePlan", own),
    sitePlan: byId("sitePlan", plan),
  };
});
afterAll(() => world.stop());

function outcome({ errors, data }: Answer): string {
  const code: string | undefined = errors?.[0]?.extensions.code;
  if (code) return code.replace("FORBIDDEN", "FORBID").replace("UNAUTHENTICATED", "UNAUTH");
  return Object.values(data)[0] === null ? "null" : "yes";
}

const [header, ...lines] = matrix.trim().split("\n");
const cells = (line: string) => line.split("|").map((cell) => cell.trim());
const names = cells(header!).filter(Boolean);
const table = lines.map((line) => ({ operation: cells(line)[0]!, expected: cells(line).slice(1) }));

test.each(table)("$operation", async ({ operation, expected }) => {
  const found: string[] = [];
  for (const name of names) found.push(outcome(await tried[operation]!(people[name]!)));
  expect(Object.fromEntries(names.map((name, i) => [name, found[i]]))).toEqual(
    Object.fromEntries(names.map((name, i) => [name, expected[i]])),
  );
});

test("the table leaves out nothing that is tried", () => {
  expect(Object.keys(tried).sort()).toEqual(table.map(({ operation }) => operation).sort());
});
