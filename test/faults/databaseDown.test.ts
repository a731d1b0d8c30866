import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { startWorld, type World } from "../harness/world.ts";
import { startGate, type Gate } from "./gate.ts";
import { expectMasked } from "./leaks.ts";
import { until } from "../harness/until.ts";

let gate: Gate;
let world: World;

beforeAll(async () => {
  gate = await startGate();
  world = await startWorld(gate.database);
});
afterAll(async () => {
  await world.stop();
  await gate[Symbol.asyncDispose]();
});

const publicProjects = "{ publicProjects { id title } }";
const viewer = "{ viewer { id } }";
const createLead = `mutation ($project: ID!, $name: String!) { createLead(input: { projectId: $project, name: $name }) { id } }`;
const leadsNamed = async (name: string) =>
  (await world.owner.query("select from app_public.leads where name = $1", [name])).rows.length;

async function whileShut<T>(work: () => Promise<T>): Promise<T> {
  gate.shut();
  try {
    return await work();
  } finally {
    gate.open();
  }
}

test("without a database, queries fail with a code and no internals; afterwards they succeed again", async () => {
  await world.anonymous.get(publicProjects);
  const down = await whileShut(() => world.anonymous.ask(publicProjects));
  expect(down.status).toBe(200);
  expect(down.data).toEqual({ publicProjects: null });
  expectMasked(down);
  expect(down.errors![0]!.extensions.code).toBe("UNAVAILABLE");
  expect(down.headers["retry-after"]).toBe("5");
  expect(await world.anonymous.get(publicProjects)).toEqual({ publicProjects: [] });
});

test("a token that cannot be looked up is neither refused nor treated as missing", async () => {
  const down = await whileShut(() => world.ada.ask(viewer));
  expect(down.status).toBe(503);
  expect(down.headers["retry-after"]).toBe("5");
  expect(down.headers["www-authenticate"]).toBeUndefined();
  expect(down.data).toBeUndefined();
  expectMasked(down);
  expect(await world.ada.get(viewer)).toEqual({ viewer: { id: world.ada.id } });
});

test("a look-up of tokens that fails inside the database is an internal error", async () => {
  const signature = "app_private.authenticate_session, app_private.stop_when_outdated";
  await world.owner.query(`revoke execute on function ${signature} from plat_authenticator`);
  try {
    const refused = await world.ada.ask(viewer);
    expect(refused.status).toBeGreaterThanOrEqual(500);
    expect(refused.data).toBeUndefined();
    expectMasked(refused);
  } finally {
    await world.owner.query(`grant execute on function ${signature} to plat_authenticator`);
  }
  await world.ada.get(viewer);
});

test("a connection lost during a mutation rolls it back, and the next request gets another connection", async () => {
  const blocker = await world.owner.connect();
  try {
    await blocker.query("begin; lock table app_public.leads in access exclusive mode");
    const cut = world.ada.ask(createLead, { project: world.project.id, name: "Cut Off" });
    for (let waiting = 0; waiting === 0;) {
      // On another connection, because pg_stat_activity does not change within a transaction.
      const { rows } = await world.owner.query(
        "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      waiting = rows[0].n;
    }
    gate.shut();
    const answer = await cut;
    expect(answer.data).toEqual({ createLead: null });
    expectMasked(answer);
    // The server notices the lost connection when the statement ends; that must not be a commit.
    await world.owner.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
  } finally {
    await blocker.query("rollback");
    blocker.release();
    gate.open();
  }
  expect(await leadsNamed("Cut Off")).toBe(0);
  await world.ada.get(createLead, { project: world.project.id, name: "Next One" });
  expect(await leadsNamed("Next One")).toBe(1);
});

test("when the server closes all connections, at most the requests on closed ones fail", async () => {
  await Promise.all(Array.from({ length: 8 }, () => world.ada.get(viewer)));
  await world.owner.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and usename = 'plat_authenticator'`,
  );
  const gone = async () =>
    (
      await world.owner.query(
        "select from pg_stat_activity where datname = current_database() and usename = 'plat_authenticator'",
      )
    ).rows.length === 0;
  await until(gone);
  let failed = 0;
  for (; (await world.ada.ask(viewer)).status !== 200; failed += 1) expect(failed).toBeLessThan(10);
  const answers = await Promise.all(Array.from({ length: 8 }, () => world.ada.ask(viewer)));
  for (const answer of answers) expect(answer.data).toEqual({ viewer: { id: world.ada.id } });
});

test("a read-only server accepts tokens, although it cannot record their use", async () => {
  const { owner, ada } = world;
  const { createAccessToken } = await ada.get(
    'mutation { createAccessToken(input: { name: "Reader" }) { token } }',
  );
  const client = await owner.connect();
  try {
    await client.query("update app_private.sessions set last_used_at = null");
    await client.query("update app_private.access_token_secrets set last_used_at = null");
    await client.query("begin read only");
    const session = await client.query(
      `select a.viewer_id from app_private.sessions s, app_private.authenticate_session($1, 0, s.id, true) a where s.user_id = $1`,
      [ada.id],
    );
    expect(session.rows).toContainEqual({ viewer_id: ada.id });
    const access = await client.query(
      "select viewer_id from app_private.authenticate_access_token(sha256(convert_to($1, 'UTF8')))",
      [createAccessToken.token],
    );
    expect(access.rows).toEqual([{ viewer_id: ada.id }]);
  } finally {
    await client.query("rollback");
    client.release();
  }
});
