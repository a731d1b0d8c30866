/**
 * A recently looked-up token is verified along with the statements of a query, and its access is passed with them.
 * Each step takes one round trip, and any change of access applies to the next request.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { pgSettings } from "../../src/database/claims.ts";
import { makeFusedAdaptor } from "../../src/database/fusedAdaptor.ts";
import { startWireProxy, type WireProxy } from "../database/wireProxy.ts";
import type { Person } from "../harness/api.ts";
import { createTestDatabase, poolOf, type TestDatabase } from "../harness/database.ts";
import { createIn, mutationOf } from "../harness/records.ts";
import { until } from "../harness/until.ts";
import { affiliate, createProject, join, programOf, startWorld, type World } from "../harness/world.ts";

let database: TestDatabase;
let proxy: WireProxy;
let world: World;
let leads: { olives: string; maxs: string };

beforeAll(async () => {
  database = await createTestDatabase();
  const url = new URL(database.authenticatorUrl);
  proxy = await startWireProxy(Number(url.port));
  url.port = `${proxy.port}`;
  world = await startWorld({ ...database, authenticatorUrl: url.href });
  const create = createIn(world.owen);
  const projectId = world.project.id;
  leads = {
    olives: await create("createLead", { projectId, name: "Olive", email: "olive@example.com" }),
    maxs: await create("createLead", {
      projectId,
      name: "Max's",
      email: "maxs@example.com",
      assigneeId: world.max.id,
    }),
  };
});
afterAll(async () => {
  await world.stop();
  await proxy.close();
  await database.drop();
});

const names = "{ leads(first: 10) { name } }";
/** The leads that the person sees; null for a request that is refused with 401. */
async function seen(person: Person): Promise<string[] | null> {
  const { status, data, errors } = await person.ask(names);
  if (status === 401) return null;
  if (errors) throw new Error(JSON.stringify(errors));
  return data.leads.map(({ name }: { name: string }) => name).toSorted();
}
/** Repeats the request until the access of the token is passed with the statements; returns the last response. */
async function warm(person: Person) {
  let answer: Awaited<ReturnType<typeof seen>> = null;
  await until(async () => {
    proxy.takeSent();
    answer = await seen(person);
    return proxy.takeSent().includes("{}|{}|{}|{}|{}");
  });
  return answer;
}
const sql = (text: string, ...values: unknown[]) => world.owner.query(text, values);

describe("a query with a recently checked token", () => {
  test.each([
    ["a record by id", "query ($id: ID!) { lead(id: $id) { name project { title } } }", 1],
    ["a list", "{ leads(first: 10, filter: { status: [NEW] }) { name assignee { fullName } } }", 1],
    [
      "a connection",
      "{ leadsConnection(first: 10) { totalCount nodes { name } pageInfo { hasNextPage } } }",
      2,
    ],
    ["three levels", "{ projects(first: 5) { title leads(first: 5) { name assignee { fullName } } } }", 2],
    ["nothing of the database", "{ __typename }", 1],
  ])(
    "%s takes one round trip for each step, including the check of the token",
    async (_what, query, steps) => {
      await warm(world.owen);
      let [fewest, most] = [Infinity, 0];
      // After a minute, the token is looked up again.
      for (let n = 0; n < 3; n += 1) {
        proxy.takeRoundTrips();
        const { count } = await world.statements(() => world.owen.get(query, { id: leads.olives }));
        fewest = Math.min(fewest, proxy.takeRoundTrips());
        most = Math.max(most, count);
      }
      expect(fewest).toBeLessThanOrEqual(steps);
      // Settings and check are one statement, sent together with that of a step.
      expect(most).toBeLessThanOrEqual(steps);
    },
  );

  test("mutations take the look-up of the token and one round trip, and do not change the cached access", async () => {
    await warm(world.owen);
    let fewest = Infinity;
    for (let n = 0; n < 3; n += 1) {
      proxy.takeRoundTrips();
      proxy.takeSent();
      await world.owen.get(mutationOf("updateLead", "{ id name status }"), {
        input: { id: leads.olives, company: `Company ${n}` },
      });
      fewest = Math.min(fewest, proxy.takeRoundTrips());
      expect(proxy.takeSent()).not.toContain("access_of");
    }
    expect(fewest).toBeLessThanOrEqual(2);
    await seen(world.owen);
    expect(proxy.takeSent()).toContain("{}|{}|{}|{}|{}");
  });

  test("a mutation looks up the token first", async () => {
    const robot = await programOf(world, world.owen, { scopes: ["lead.*"] });
    await warm(robot).catch(() => undefined);
    await robot.get("{ leads(first: 1) { name } }");
    await sql("update app_public.access_tokens set revoked_at = now() where user_id = $1", world.owen.id);
    const before = await sql("select count(*) from app_public.leads");
    const { status } = await robot.ask(mutationOf("createLead", "{ id }"), {
      input: { projectId: world.project.id, name: "Nobody's", email: "nobody@example.com" },
    });
    expect(status).toBe(401);
    expect((await sql("select count(*) from app_public.leads")).rows).toEqual(before.rows);
  });

  test("a list is sent without the parts in which its viewer has no access, in each form it may take", async () => {
    const sentParts = async (person: Person) => {
      const { texts } = await world.statements(() => person.get(names));
      return [...texts.join().matchAll(/\/\* if (\w+) \*\//g)].map(([, set]) => set);
    };
    // All, until the access of the viewer is known again after a change.
    const partsFor = (person: Person) =>
      until(
        () => sentParts(person),
        ({ length }) => length < 3,
      );
    expect(await partsFor(world.owen)).toEqual(["viewer_organizations"]);
    await sql("update app_public.projects set lead_assignment = 'PRIVATE' where id = $1", world.project.id);
    expect(await partsFor(world.max)).toEqual(["viewer_own_projects"]);
    await sql("update app_public.projects set lead_assignment = 'MANUAL' where id = $1", world.project.id);
    expect(await partsFor(world.max)).toEqual(["viewer_organizations"]);
  });
});

describe("the next request after", () => {
  const both = ["Max's", "Olive"];
  const role = (person: Person, to: string) =>
    sql("update app_public.organization_user_connections set role = $2 where user_id = $1", person.id, to);
  const assignment = (to: string) =>
    sql("update app_public.projects set lead_assignment = $2 where id = $1", world.project.id, to);

  test("a project became private, or open, shows the remaining records", async () => {
    expect(await warm(world.max)).toEqual(both);
    await assignment("PRIVATE");
    expect(await seen(world.max)).toEqual(["Max's"]);
    expect(await warm(world.max)).toEqual(["Max's"]);
    await assignment("MANUAL");
    expect(await seen(world.max)).toEqual(both);
  });

  test("a private project was created or deleted shows the remaining records", async () => {
    expect(await warm(world.max)).toEqual(both);
    const quiet = await createProject(world.owen, {
      organizationId: world.harbour.id,
      title: "Quiet",
      leadAssignment: "PRIVATE",
    });
    await createIn(world.owen)("createLead", {
      projectId: quiet.id,
      name: "Quiet's",
      email: "q@example.com",
    });
    expect(await seen(world.max)).toEqual(both);
    await warm(world.max);
    await sql("update app_public.projects set lead_assignment = 'MANUAL' where id = $1", quiet.id);
    expect(await seen(world.max)).toEqual([...both, "Quiet's"]);
    await warm(world.max);
    await sql("update app_public.projects set deleted_at = now() where id = $1", quiet.id);
    await sql("update app_public.leads set deleted_at = now() where project_id = $1", quiet.id);
    expect(await seen(world.max)).toEqual(both);
  });

  test("a role changed shows the records of the new role", async () => {
    await assignment("PRIVATE");
    expect(await warm(world.max)).toEqual(["Max's"]);
    await role(world.max, "ADMIN");
    expect(await seen(world.max)).toEqual(both);
    await warm(world.max);
    await role(world.max, "MEMBER");
    expect(await seen(world.max)).toEqual(["Max's"]);
    await assignment("MANUAL");
  });

  test("joining or leaving takes effect completely or not at all", async () => {
    const nora = await world.signUp("Nora New");
    expect(await warm(nora).catch(() => seen(nora))).toEqual([]);
    await join(world, world.harbour.id, nora, "MEMBER");
    expect(await seen(nora)).toEqual(both);
    await warm(nora);
    await sql("delete from app_public.organization_user_connections where user_id = $1", nora.id);
    expect(await seen(nora)).toEqual([]);
  });

  test("an organization was affiliated with a project, lost a permission there, or the affiliation", async () => {
    const projects = async () =>
      (await world.olga.get("{ projects(first: 10) { title } }")).projects.map(
        ({ title }: { title: string }) => title,
      );
    const units = () =>
      world.olga.get(`{ unitsConnection(filter: { projectId: "${world.project.id}" }) { totalCount } }`);
    await createIn(world.owen)("createUnit", { projectId: world.project.id, title: "1", number: "1" });
    await warm(world.olga);
    expect(await projects()).toEqual([]);
    await warm(world.olga);
    await affiliate(world, world.project, world.summit, "SELLER");
    expect(await projects()).toEqual(["Harbour View"]);
    expect(await units()).toEqual({ unitsConnection: { totalCount: 1 } });
    await warm(world.olga);
    await sql(
      "update app_public.project_organizations set permissions = '{project.read}' where organization_id = $1",
      world.summit.id,
    );
    expect(await units()).toEqual({ unitsConnection: { totalCount: 0 } });
    await warm(world.olga);
    await sql(
      "delete from app_public.project_organizations where organization_id = $1 and role <> 'OWNER'",
      world.summit.id,
    );
    expect(await projects()).toEqual([]);
  });

  test("the permissions of a role were changed shows that", async () => {
    expect(await warm(world.max)).toEqual(both);
    const { rows } = await sql(
      "delete from app_private.role_permissions where role = 'MEMBER' and permission = 'lead.read' returning *",
    );
    expect(await seen(world.max)).toEqual([]);
    await warm(world.max);
    await sql(
      "insert into app_private.role_permissions (role, permission, reach, in_affiliated) values ($1, $2, $3, $4)",
      ...["role", "permission", "reach", "in_affiliated"].map((name) => rows[0][name]),
    );
    expect(await seen(world.max)).toEqual(both);
  });

  test("a second factor became due is refused with the reason, and shows nothing", async () => {
    const dora = await world.signUp("Dora Due");
    await join(world, world.harbour.id, dora, "MEMBER");
    expect(await warm(dora)).toEqual(both);
    const due = (interval: string) =>
      sql(
        "update app_public.organization_user_connections set second_factor_due_at = now() + $2::interval where user_id = $1",
        dora.id,
        interval,
      );
    await due("1 day");
    expect(await warm(dora)).toEqual(both);
    await due("-1 minute");
    expect((await dora.ask(names)).errors![0]!.extensions).toMatchObject({
      code: "FORBIDDEN",
      reason: "ORGANIZATION_REQUIRES_SECOND_FACTOR",
    });
  });

  const token = (person: Person, input: object = {}) =>
    programOf(world, person, { scopes: ["lead.read", "project.read"], ...input });
  const ends: [string, () => Promise<Person>, (person: Person) => Promise<unknown>][] = [
    [
      "a session was ended",
      () => world.signUp("Lou Logout"),
      (lou) => sql("update app_private.sessions set ended_at = now() where user_id = $1", lou.id),
    ],
    [
      "a session expired",
      () => world.signUp("Eve Expired"),
      (eve) => sql("update app_private.sessions set expires_at = now() where user_id = $1", eve.id),
    ],
    [
      "a user was suspended",
      () => world.signUp("Sue Suspended"),
      (sue) => sql("update app_public.users set status = 'SUSPENDED' where id = $1", sue.id),
    ],
    [
      "a user was deleted",
      () => world.signUp("Del Deleted"),
      (del) => sql("update app_public.users set deleted_at = now() where id = $1", del.id),
    ],
    [
      "an access token was revoked",
      () => token(world.ada),
      () => sql("update app_public.access_tokens set revoked_at = now() where user_id = $1", world.ada.id),
    ],
    [
      "an access token expired",
      () => token(world.ada),
      () => sql("update app_public.access_tokens set expires_at = now() where user_id = $1", world.ada.id),
    ],
    [
      "the token that created an access token was revoked",
      async () => token(await token(world.ada, { scopes: undefined })),
      () =>
        sql(
          "update app_public.access_tokens set revoked_at = now() where user_id = $1 and parent_id is null",
          world.ada.id,
        ),
    ],
  ];
  test.each(ends)("%s is refused with 401, for any query", async (_what, make, end) => {
    const person = await make();
    expect(await warm(person)).toEqual(person.id ? [] : both);
    await person.get(names);
    await end(person);
    for (const query of [names, "{ __typename }", mutationOf("logout", "{ id }")]) {
      const { status, errors } = await person.ask(query, { input: {} });
      expect({ status, code: errors?.[0]!.extensions.code }).toEqual({
        status: 401,
        code: "UNAUTHENTICATED",
      });
    }
  });
});

test("restrictions of a token apply to its passed access", async () => {
  const robot = await programOf(world, world.owen, { scopes: ["project.read"] });
  const other = await programOf(world, world.owen, { readOnly: true, organizationId: world.harbour.id });
  await until(async () => {
    proxy.takeSent();
    await robot.get("{ projects(first: 10) { title } }");
    return proxy.takeSent().includes("{}|{}|{}|{}|{}");
  });
  expect(await seen(robot)).toEqual([]);
  expect(await warm(other)).toEqual(["Max's", "Olive"]);
  expect(
    (
      await other.refused(mutationOf("createLead", "{ id }"), {
        input: { projectId: world.project.id, name: "No", email: "no@example.com" },
      })
    ).code,
  ).toBe("FORBIDDEN");
});

test("settings that remain on a connection are not used", async () => {
  const pool = poolOf(database.authenticatorUrl, 1);
  const everything = [world.harbour.id, world.project.id].map((id) => `{${id}}`);
  const sets = [everything[0], everything[1], everything[1], everything[0], everything[1]].join("|");
  await pool.query(`set plat.access = ',lead.read=1,project.read=1,'`);
  for (const name of ["plat.access_", "plat.access_1"]) await pool.query(`set ${name} = '${sets}'`);
  try {
    const settings = pgSettings(
      { userId: world.olga.id, readOnly: false },
      { requestId: "forged", channel: "API" },
    );
    const withPgClient = makeFusedAdaptor().createWithPgClient({ pool });
    const { rows } = await withPgClient(settings, (client) =>
      client.query<{ n: string }>({ text: "select count(*) as n from app_public.leads" }),
    );
    expect(rows).toEqual([{ n: "0" }]);
  } finally {
    await pool.end();
  }
});
