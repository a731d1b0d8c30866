/** Positions: how far the data of a response reach, and requests that require a position. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { parseLsn, Positions } from "../../src/database/position.ts";
import { awaitReplay } from "../../src/database/replicas.ts";
import { type Answer, type Api, type Person, startApi } from "../harness/api.ts";

let api: Api;
let ann: Person;
let positions: Positions;

beforeAll(async () => {
  api = await startApi();
  ann = await api.signUp("Ann");
  const { rows } = await api.owner.query("select system_identifier::text as id from pg_control_system()");
  positions = new Positions(rows[0].id);
});
afterAll(() => api.stop());

const VIEWER = "{ viewer { id } }";
const CREATE = "mutation ($title: String!) { createOrganization(input: { name: $title }) { id } }";
/** The present end of the WAL. */
const reached = async (): Promise<bigint> =>
  parseLsn((await api.owner.query("select pg_current_wal_insert_lsn()::text as lsn")).rows[0].lsn);
const lsnOf = ({ extensions }: Answer): bigint => parseLsn(positions.read(extensions.position, "position"));
const asking = (position: string) => ({ headers: { "Plat-Position": position } });

test("a response includes what was committed before the request, planned or compiled, in as many statements", async () => {
  const counts = new Set<number>();
  for (let n = 0; n < 6; n += 1) {
    await api.owner.query("select pg_logical_emit_message(false, 'test', 'something')");
    const before = await reached();
    const { result, count } = await api.statements(() => ann.ask(VIEWER));
    counts.add(count);
    expect(lsnOf(result)).toBeGreaterThanOrEqual(before);
    expect(lsnOf(result)).toBeLessThanOrEqual(await reached());
    expect(result.headers["plat-position"]).toBe(result.extensions.position);
    expect(Object.keys(result.extensions)).toEqual(["cost", "position"]);
  }
  expect([...counts]).toEqual([1]);
});

test("the position of a mutation is after its commit", async () => {
  await api.owner.query(`
    create table app_private.lsn_at_commit (lsn pg_lsn);
    create function app_private.tg_organizations__lsn() returns trigger language plpgsql security definer as $$
    begin
      insert into app_private.lsn_at_commit values (pg_current_wal_insert_lsn());
      return null;
    end $$;
    create constraint trigger _999_lsn after insert on app_public.organizations
      deferrable initially deferred for each row execute function app_private.tg_organizations__lsn()`);
  const before = await reached();
  const answer = await ann.ask(CREATE, { title: "Positions" });
  expect(answer.errors).toBeUndefined();
  const lsn = lsnOf(answer);
  expect(lsn).toBeGreaterThan(before);
  expect(lsn).toBeLessThanOrEqual(await reached());
  const { rows } = await api.owner.query("select lsn::text from app_private.lsn_at_commit");
  expect(rows).toHaveLength(1);
  expect(lsn).toBeGreaterThan(parseLsn(rows[0].lsn));
});

test("a request that is refused before its statements, or reads nothing from the database, has no position", async () => {
  for (const text of ["{ nothing }", "{ __typename }"]) {
    const { headers, extensions } = await ann.ask(text);
    expect([headers["plat-position"], extensions?.position]).toEqual([undefined, undefined]);
  }
});

test("a request can require data up to a position, by header or by its extensions", async () => {
  const { extensions } = await ann.ask(CREATE, { title: "Not before" });
  const { position } = extensions;
  const body = JSON.stringify({ query: VIEWER, extensions: { position } });
  const headers = { "content-type": "application/json", authorization: `Bearer ${ann.token}` };
  for (const answer of [await ann.ask(VIEWER, {}, asking(position)), await api.post(body, headers)]) {
    expect(answer.data).toEqual({ viewer: { id: ann.id } });
    expect(lsnOf(answer)).toBeGreaterThanOrEqual(lsnOf({ extensions } as Answer));
  }
  const { count } = await api.statements(() => ann.ask(VIEWER, {}, asking(position)));
  expect(count).toBe(1);
});

test("an invalid position, one of another database or one not reached is refused, and nothing is executed", async () => {
  const ahead = positions.write((await reached()) + 1_000_000_000n);
  const elsewhere = new Positions("1").write(1n);
  for (const position of ["", "x", "AAAA", elsewhere, `${ahead}A`, "a".repeat(1000)]) {
    const { status, errors } = await ann.ask(CREATE, { title: "Refused" }, asking(position));
    expect({ position, status, errors }).toMatchObject({
      status: 400,
      errors: [{ extensions: { code: "BAD_USER_INPUT", field: "Plat-Position" } }],
    });
  }
  for (const [text, variables] of [
    [VIEWER, {}],
    [CREATE, { title: "Refused" }],
  ] as const) {
    const { data, errors } = await ann.ask(text, variables, asking(ahead));
    expect(Object.values(data ?? {}).every((value) => value === null)).toBe(true);
    expect(errors).toMatchObject([{ extensions: { code: "BAD_USER_INPUT", field: "extensions.position" } }]);
  }
  const query = JSON.stringify({ query: VIEWER, extensions: { position: 7 } });
  const headers = { "content-type": "application/json", authorization: `Bearer ${ann.token}` };
  expect((await api.post(query, headers)).errors).toMatchObject([
    { extensions: { code: "BAD_USER_INPUT", field: "extensions.position" } },
  ]);
  const { rows } = await api.owner.query("select from app_public.organizations where name = 'Refused'");
  expect(rows).toEqual([]);
});

test("a server that is no standby is not taken for a replica that has replayed a position", async () => {
  const client = new Client({ connectionString: api.database.authenticatorUrl });
  await client.connect();
  const awaiting = client.query({ ...awaitReplay, values: ["0/0"] });
  await expect(awaiting).rejects.toMatchObject({ code: "PLAT4" });
  await client.end();
});
