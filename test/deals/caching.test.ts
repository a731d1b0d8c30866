/** Conditional requests (docs/caching.md): a response of 304 is only sent if the full response would be the same. */
import { createHash } from "node:crypto";
import { Agent, request } from "node:https";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { ReadsOf } from "../../src/database/statementReads.ts";
import type { Person } from "../harness/api.ts";
import { long, testWithSeeds } from "../harness/seeds.ts";
import { moves, play } from "./model.ts";
import { startDeals, type Deals } from "./world.ts";

let deals: Deals;
const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });

interface Reply {
  status: number;
  headers: Record<string, any>;
  text: string;
}

/** Sends a request unchanged, and returns the raw response. */
const send = (
  { token }: Pick<Person, "token">,
  {
    path = "/graphql",
    body,
    tag,
    headers = {},
  }: { path?: string; body?: object; tag?: string | undefined; headers?: Record<string, string> },
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const outgoing = request(
      new URL(path, deals.url),
      {
        agent,
        method: body ? "POST" : "GET",
        headers: {
          ...(body && { "content-type": "application/json" }),
          ...(token && { authorization: `Bearer ${token}` }),
          ...(tag !== undefined && { "if-none-match": tag }),
          ...headers,
        },
      },
      (reply) => {
        let text = "";
        reply.setEncoding("utf8");
        reply.on("data", (part) => (text += part));
        reply.on("end", () => resolve({ status: reply.statusCode!, headers: reply.headers, text }));
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body && JSON.stringify(body));
  });
const ask = (person: Pick<Person, "token">, query: string, variables: object = {}, tag = '""') =>
  send(person, { body: { query, variables }, tag });
const dataOf = ({ text }: Reply) => JSON.stringify(JSON.parse(text).data);

const LEADS = "{ leads(first: 50) { id name status version updatedAt } }";
const LEAD = "query ($id: ID!) { lead(id: $id) { id name status assignee { id firstName } } }";
const UNITS = "query ($id: ID!) { project(id: $id) { title units { id status price version } } }";

/** Repeats the request until its query is compiled, and returns the last response. */
async function compiled(
  person: Pick<Person, "token">,
  query: string,
  ids: readonly string[] = [],
): Promise<Reply> {
  let last!: Reply;
  for (let n = 0; n < 4; n += 1) {
    const id = ids[n % 2];
    last = await ask(person, query, id === undefined ? {} : { id });
    expect(JSON.parse(last.text).errors).toBeUndefined();
  }
  return last;
}

beforeAll(async () => {
  deals = await startDeals();
  await deals.restock();
});
afterAll(() => {
  agent.destroy();
  return deals?.stop();
});

test("unchanged responses are neither sent nor read again", async () => {
  const [one, two] = deals.stock.leads as [string, string];
  const before = await compiled(deals.owen, LEAD, [one, two]);
  const tag = before.headers.etag as string;
  expect(tag).toMatch(/^W\/".{27}"$/);
  expect(before.headers["cache-control"]).toBe("private, no-cache");
  const { result, count } = await deals.statements(() => ask(deals.owen, LEAD, { id: two }, tag));
  expect([result.status, result.text, result.headers.etag]).toEqual([304, "", tag]);
  expect(result.headers["plat-position"]).toEqual(expect.any(String));
  expect(count).toBe(0);
  // Another lead, another document, another viewer: another response.
  expect((await ask(deals.owen, LEAD, { id: one }, tag)).status).toBe(200);
  expect((await ask(deals.owen, LEAD.replace("status", "status email"), { id: two }, tag)).status).toBe(200);
  expect((await ask(deals.max, LEAD, { id: two }, tag)).status).toBe(200);
  await deals.owen.get(`mutation ($id: ID!) { updateLead(input: { id: $id, name: "Renamed" }) { id } }`, {
    id: one,
  });
  const after = await ask(deals.owen, LEAD, { id: two }, tag);
  expect([after.status, dataOf(after)]).toEqual([200, dataOf(before)]);
  expect(after.headers.etag).not.toBe(tag);
  // Requests without If-None-Match take no additional statement.
  const plain = await deals.statements(() =>
    send(deals.owen, { body: { query: LEAD, variables: { id: two } } }),
  );
  expect([plain.count, plain.result.headers.etag]).toEqual([1, undefined]);
});

test("changes without an event are detected too: of an erased record, and of secret data", async () => {
  const id = deals.stock.leads[0]!;
  for (const change of [
    "update app_public.leads set status_before_deal = case when status_before_deal is null then 'NEW'::app_public.lead_status end where id = $1",
    "with e as (select app_private.set_erasing(true)) update app_public.leads set company = 'gone' from e where id = $1",
  ]) {
    const { etag } = (await compiled(deals.owen, LEADS)).headers;
    expect((await ask(deals.owen, LEADS, {}, etag)).status).toBe(304);
    await deals.owner.query(change, [id]);
    expect((await ask(deals.owen, LEADS, {}, etag)).status).toBe(200);
  }
});

test("the tables that a statement reads are known from the catalog; it is not cached if it depends on the clock or on tables without events", async () => {
  const reads = await ReadsOf.load(deals.owner);
  const reachOf = (text: string) => reads.find([text]).reach;
  for (const [text, reach] of [
    ['select l."id" from "app_public"."leads" l', "own"],
    ["select from app_public.units", "whole"],
    ["select from app_hidden.masked_users", "whole"],
    ["select from app_hidden.masked_reservations", "whole"],
    // Members with a deadline for their second factor, deliveries, signed URLs, settings of a request.
    ["select from app_hidden.masked_organization_user_connections", "unknown"],
    ["select from app_public.webhook_deliveries", "unknown"],
    ["select app_hidden.file_address(null)", "unknown"],
    ["select app_hidden.setting('ip')", "unknown"],
    ["select from app_public.leads where inserted_at > now()", "unknown"],
  ] as const)
    expect([text, reachOf(text)]).toEqual([text, reach]);
  // Tables that should show nobody more than their own records indeed do not.
  const { rows: tables } = await deals.owner.query<{ relname: string }>(
    "select relname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'organization_id' where relnamespace = 'app_public'::regnamespace and relkind in ('r', 'p') order by 1",
  );
  const own = tables
    .map(({ relname }) => relname)
    .filter((name) => reachOf(`select from app_public.${name}`) === "own");
  expect(own).toEqual(expect.arrayContaining(["leads", "lead_sources", "exports"]));
  const client = await deals.owner.connect();
  try {
    for (const { id } of deals.players.flat().filter((person) => person.id)) {
      await client.query("begin");
      await client.query("select set_config('plat.user_id', $1, true)", [id]);
      const parts = await client.query(
        "select array_agg(p) as ids from app_private.viewer_deadline_organizations() p",
      );
      await client.query("set local role plat_user");
      for (const table of own) {
        const { rows } = await client.query(
          `select count(*)::int as n from app_public.${table} t where t.organization_id <> all ($1)`,
          [parts.rows[0].ids ?? []],
        );
        expect([table, rows[0].n]).toEqual([table, 0]);
      }
      await client.query("rollback");
    }
  } finally {
    await client.query("rollback");
    client.release();
  }
});

test("an expired token gets no 304, nor does a former member", async () => {
  const guest = await deals.signUp("Gus Guest");
  const { rows } = await deals.owner.query(
    "insert into app_public.organization_user_connections (organization_id, user_id, role) select organization_id, $1, 'MEMBER' from app_public.projects where id = $2 returning id",
    [guest.id, deals.project.id],
  );
  const { etag } = (await compiled(guest, LEADS)).headers;
  expect((await ask(guest, LEADS, {}, etag)).status).toBe(304);
  await deals.owner.query("delete from app_public.organization_user_connections where id = $1", [rows[0].id]);
  const without = await ask(guest, LEADS, {}, etag);
  expect([without.status, dataOf(without)]).toEqual([200, '{"leads":[]}']);
  const again = (await compiled(guest, LEADS)).headers.etag;
  expect((await ask(guest, LEADS, {}, again)).status).toBe(304);
  await deals.owner.query("update app_private.sessions set ended_at = now() where user_id = $1", [guest.id]);
  expect((await ask(guest, LEADS, {}, again)).status).toBe(401);
});

test("only a registered query can be requested by GET", async () => {
  const idOf = async (text: string) => {
    const id = `sha256:${createHash("sha256").update(text).digest("hex")}`;
    await deals.owner.query("select app_private.register_document($1, $2)", [id, text]);
    return encodeURIComponent(id);
  };
  const path = `/graphql?documentId=${await idOf(UNITS)}&variables=${encodeURIComponent(JSON.stringify({ id: deals.project.id }))}`;
  const posted = await send(deals.owen, { body: { query: UNITS, variables: { id: deals.project.id } } });
  const got = await send(deals.owen, { path });
  expect([got.status, dataOf(got)]).toEqual([200, dataOf(posted)]);
  const mutation = await idOf("mutation { signOut }");
  const refused = await send(deals.owen, { path: `/graphql?documentId=${mutation}` });
  expect([refused.status, refused.headers.allow]).toEqual([405, "POST"]);
  for (const [query, status] of [
    ["?query=%7Bviewer%7Bid%7D%7D", 405],
    ["?documentId=nobody", 404],
    [`?documentId=${mutation}&variables=x`, 400],
  ] as const)
    expect([query, (await send(deals.owen, { path: `/graphql${query}` })).status]).toEqual([query, status]);
});

/** Lists that a random deal changes, with and without ids. */
const documents = [
  LEADS,
  "{ leads(first: 50) { id status assignee { id firstName } project { id title } } }",
  "{ units(first: 50) { id status price version project { title } } }",
  "{ lots(first: 50) { id status } }",
  "{ reservations(first: 50) { id status version } }",
  "{ offers(first: 50) { id status price } }",
  "{ negotiations(first: 50) { id status } }",
  "{ buyers(first: 50) { id status price } }",
  "{ deposits(first: 50) { id status amount } }",
  "{ unitHolds(first: 50) { id status } }",
  "{ projects(first: 10) { id title status version } }",
];

testWithSeeds("after random deals, what is told to be unchanged is what is answered anew", async (seed) => {
  const people = [...new Set(deals.players.flat())];
  const kept = new Map<string, { tag: string | undefined; data: string }>();
  const counts = { unchanged: 0, changed: 0, stale: 0, untagged: 0 };
  const answered: string[] = [];
  for (const query of documents) {
    const { text, headers } = await compiled(deals.owen, query).catch(
      () => ({ text: "", headers: {} }) as Reply,
    );
    if (text !== "" && headers.etag) answered.push(query);
  }
  expect(answered.length).toBeGreaterThan(5);
  const compare = async (): Promise<void> => {
    for (const person of people)
      for (const query of answered) {
        const key = `${person.token} ${query}`;
        const before = kept.get(key);
        const reply = await ask(person, query, {}, before?.tag);
        if (reply.status === 304) {
          counts.unchanged += 1;
          if (dataOf(await send(person, { body: { query, variables: {} } })) !== before!.data)
            counts.stale += 1;
          continue;
        }
        counts[reply.headers.etag ? "changed" : "untagged"] += 1;
        kept.set(key, { tag: reply.headers.etag, data: dataOf(reply) });
      }
  };
  await compare();
  await fc.assert(
    fc.asyncProperty(fc.array(moves(4), { minLength: 1, maxLength: 3 }), async (players) => {
      await Promise.all(
        players.map(async (steps) => {
          for (const step of steps) await play(deals, step);
        }),
      );
      await compare();
      await compare();
    }),
    { seed, numRuns: long ? 40 : 4, endOnFailure: true },
  );
  expect(counts.stale).toBe(0);
  expect(counts.unchanged).toBeGreaterThan(counts.changed / 2);
});
