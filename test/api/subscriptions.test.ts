import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { once } from "node:events";
import { request } from "node:https";
import type { IncomingMessage } from "node:http";
import { createClient, type ClientOptions } from "graphql-ws";
import { WebSocket } from "ws";
import type { Person } from "../harness/api.ts";
import { startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { until } from "../harness/until.ts";
import { programOf } from "../harness/world.ts";

let world: Portfolio;

/** A response as server-sent events, in the protocol of graphql-sse. */
interface Subscription {
  status: number;
  type: string | undefined;
  results: any[];
  isComplete: boolean;
  isClosed: boolean;
  body: any;
  close(): void;
}
const opened: Subscription[] = [];

async function subscribe(
  person: Pick<Person, "token">,
  query: string,
  variables: Record<string, unknown> = {},
  accept = "text/event-stream",
): Promise<Subscription> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const outgoing = request(
      world.url,
      {
        method: "POST",
        rejectUnauthorized: false,
        agent: false,
        headers: {
          accept,
          "content-type": "application/json",
          ...(person.token && { authorization: `Bearer ${person.token}` }),
        },
      },
      resolve,
    );
    outgoing.on("error", reject).end(JSON.stringify({ query, variables }));
  });
  const found: Subscription = {
    status: answer.statusCode!,
    type: answer.headers["content-type"],
    results: [],
    isComplete: false,
    isClosed: false,
    body: undefined,
    close: () => void answer.destroy(),
  };
  opened.push(found);
  let text = "";
  answer.setEncoding("utf8").on("error", () => {});
  answer.on("close", () => {
    found.isClosed = true;
    if (found.type?.startsWith("application/")) found.body = JSON.parse(text);
  });
  answer.on("data", (part: string) => {
    text += part;
    if (found.type?.startsWith("application/")) return;
    const blocks = text.split("\n\n");
    text = blocks.pop()!;
    for (const block of blocks) {
      const [, event, data] = /^event: (\w+)\ndata: ?(.*)$/s.exec(block) ?? [];
      if (event === "next") found.results.push(JSON.parse(data!));
      if (event === "complete") found.isComplete = true;
    }
  });
  if (found.type?.startsWith("application/")) await until(() => found.isClosed);
  return found;
}

const eventsOf = `subscription ($filter: EventSubscriptionFilter!, $after: String) {
  events(filter: $filter, afterSequence: $after) {
    organizationId upToSequence events { id name sequence subjectId data subject { __typename ... on Lead { company } } } } }`;

const update = (person: Person, id: string, company: string) =>
  person.get(
    `mutation ($id: ID!, $company: String) { updateLead(input: { id: $id, company: $company }) { id } }`,
    {
      id,
      company,
    },
  );

const eventsIn = ({ results }: Subscription) => results.flatMap(({ data }) => data.events.events);
const upTo = ({ results }: Subscription) =>
  Number(Object.values<any>(results.at(-1)?.data ?? {})[0]?.upToSequence ?? -1);
const head = async (): Promise<number> => {
  const text = "select last_sequence from app_private.event_counters where stream_id = $1";
  return Number((await world.owner.query(text, [world.harbour.id])).rows[0].last_sequence);
};
const isAt = (subscription: Subscription, sequence: number) =>
  until(
    () => upTo(subscription),
    (found) => found >= sequence,
  );

beforeAll(async () => {
  world = await startPortfolio();
});
afterEach(async () => {
  for (const one of opened) one.close();
  await until(() => opened.every(({ isClosed }) => isClosed));
  opened.length = 0;
  // No process listens for the organization any longer.
  await until(async () => {
    const { rows } = await world.owner.query("select from pg_locks where classid = 7528005");
    return rows.length === 0;
  });
});
afterAll(() => world.stop());

test("viewers receive the events that eventsConnection returns to them, including earlier ones, with the selected fields", async () => {
  const people = {
    owner: world.owen,
    member: world.max,
    program: await programOf(world, world.ada, { scopes: ["org.member", "lead.read"] }),
  };
  const filter = { organizationId: world.harbour.slug };
  const subscriptions: [Person, Subscription][] = [];
  for (const person of Object.values(people))
    subscriptions.push([person, await subscribe(person, eventsOf, { filter, after: "0" })]);
  await update(world.owen, world.leads.open.id, "Told");
  await update(world.mia, world.leads.mias.id, "Of somebody else");
  const last = await head();
  for (const [person, subscription] of subscriptions) {
    await isAt(subscription, last);
    expect(subscription.type).toBe("text/event-stream; charset=utf-8");
    const { eventsConnection } = await person.get(
      `{ eventsConnection(first: 1000, filter: { organizationId: "${world.harbour.id}" }) { nodes { id name sequence subjectId data } } }`,
    );
    expect(
      eventsIn(subscription).map(({ id, name, sequence, subjectId, data }: any) => ({
        id,
        name,
        sequence,
        subjectId,
        data,
      })),
    ).toEqual(eventsConnection.nodes);
    expect(subscription.results.every(({ errors }) => errors === undefined)).toBe(true);
    expect(subscription.results[0].extensions.position).toEqual(expect.any(String));
  }
  const [, ofOwner] = subscriptions[0]!;
  expect(eventsIn(ofOwner).at(-2)).toMatchObject({
    name: "lead.updated",
    subject: { __typename: "Lead", company: "Told" },
  });
});

test("`changed` returns which of the given records must be read again", async () => {
  const document = `subscription ($ids: [ID!]!, $id: ID!) { changed(ids: $ids, organizationId: $id) { ids upToSequence } }`;
  const ids = [world.leads.open.id, world.leads.mias.id];
  const [owner, member] = [
    await subscribe(world.owen, document, { ids, id: world.harbour.id }),
    await subscribe(world.max, document, { ids, id: world.harbour.id }),
  ];
  const begun = await head();
  await isAt(owner, begun);
  await isAt(member, begun);
  await update(world.owen, world.leads.maxs.id, "Not asked for");
  await update(world.owen, world.leads.open.id, "Changed");
  await update(world.owen, world.leads.mias.id, "Changed, and hidden from Max");
  for (const one of [owner, member]) await isAt(one, begun + 3);
  const changed = ({ results }: Subscription) => new Set(results.flatMap(({ data }) => data.changed.ids));
  expect(changed(owner)).toEqual(new Set(ids));
  expect(changed(member)).toEqual(new Set([world.leads.open.id]));
});

test("an invalid subscription is refused, in the requested media type", async () => {
  const codeOf = async (person: Pick<Person, "token">, filter: Record<string, unknown>, after?: string) => {
    const { results, isComplete } = await until(
      await subscribe(person, eventsOf, { filter, after }).then((found) => () => found),
      (found) => found.isComplete,
    );
    expect(isComplete).toBe(true);
    return results[0].errors[0].extensions.code;
  };
  expect(await codeOf(world.anonymous, { organizationId: world.harbour.id })).toBe("UNAUTHENTICATED");
  expect(await codeOf(world.olga, { organizationId: world.harbour.id })).toBe("NOT_FOUND");
  expect(await codeOf(world.owen, { organizationId: world.harbour.id }, "99999")).toBe("BAD_USER_INPUT");
  const asJson = await subscribe(
    world.owen,
    eventsOf,
    { filter: { organizationId: world.harbour.id } },
    "application/json",
  );
  expect(asJson.body.errors[0]).toMatchObject({ extensions: { code: "BAD_USER_INPUT" } });
  const deep = `subscription { events(filter: { organizationId: "x" }) { events ${"{ causedBy ".repeat(14)} { id } ${"}".repeat(14)} } }`;
  const refused = await subscribe(world.owen, deep);
  await until(() => refused.isComplete || refused.isClosed);
  expect(refused.results[0].errors[0].extensions.code).toBe("LIMIT_EXCEEDED");
  // Queries are answered as events only if the client accepts nothing else.
  const query = await subscribe(world.owen, "{ viewer { id } }");
  await until(() => query.isComplete);
  expect(query.results[0].data).toEqual({ viewer: { id: world.owen.id } });
  const both = await subscribe(world.owen, "{ viewer { id } }", {}, "application/json, text/event-stream");
  expect(both.body.data).toEqual({ viewer: { id: world.owen.id } });
});

test("a token that is revoked ends its subscriptions with a code", async () => {
  const { createAccessToken: token } = await world.owen.get(
    `mutation { createAccessToken(input: { name: "Screen" }) { id token } }`,
  );
  const subscription = await subscribe(world.person(token.token), eventsOf, {
    filter: { organizationId: world.harbour.id },
  });
  await isAt(subscription, await head());
  await world.owen.get(`mutation ($id: ID!) { revokeAccessToken(input: { id: $id }) { id } }`, {
    id: token.id,
  });
  await until(() => subscription.isComplete);
  expect(subscription.results.at(-1).errors[0].extensions.code).toBe("UNAUTHENTICATED");
});

/** The usual client of the protocol. */
function socketOf(options: Partial<ClientOptions> = {}, headers: Record<string, string> = {}) {
  class Trusting extends WebSocket {
    constructor(address: string, protocols?: string | string[]) {
      super(address, protocols, { rejectUnauthorized: false, headers });
    }
  }
  const closed: number[] = [];
  const client = createClient({
    url: world.url.replace(/^https/, "wss"),
    webSocketImpl: Trusting,
    retryAttempts: 0,
    on: { closed: (event) => void closed.push((event as { code: number }).code) },
    ...options,
  });
  return { client, closed };
}

/** Subscribes by WebSocket. */
function listenTo(
  client: ReturnType<typeof createClient>,
  query: string,
  variables: Record<string, unknown> = {},
): Subscription & { errors: any } {
  const found: Subscription & { errors: any } = {
    status: 0,
    type: undefined,
    results: [],
    isComplete: false,
    isClosed: false,
    body: undefined,
    errors: undefined,
    close: () => {},
  };
  found.close = client.subscribe(
    { query, variables },
    {
      next: (result) => void found.results.push(result),
      error: (errors) => {
        found.errors = errors;
        found.isClosed = true;
      },
      complete: () => {
        found.isComplete = found.isClosed = true;
      },
    },
  );
  opened.push(found);
  return found;
}

test("WebSocket subscriptions have the same events, and resume after a sequence number", async () => {
  const last = await head();
  const filter = { organizationId: world.harbour.id };
  const told1 = await subscribe(world.max, eventsOf, { filter, after: "0" });
  await isAt(told1, last);
  const { client } = socketOf({ connectionParams: { authorization: `Bearer ${world.max.token}` } });
  const subscription = listenTo(client, eventsOf, { filter, after: "0" });
  const later = listenTo(client, eventsOf, { filter, after: String(last) });
  await isAt(subscription, last);
  expect(eventsIn(subscription)).toEqual(eventsIn(told1));
  expect(subscription.results[0].extensions.position).toEqual(expect.any(String));
  await update(world.max, world.leads.maxs.id, "Seen by socket");
  await until(() => eventsIn(subscription).at(-1)?.subject?.company === "Seen by socket");
  await isAt(later, await head());
  expect(eventsIn(later).every(({ sequence }: any) => Number(sequence) > last)).toBe(true);
  // The token of the handshake is accepted too.
  const own = socketOf({}, { authorization: `Bearer ${world.max.token}` });
  const also = listenTo(own.client, eventsOf, { filter, after: String(last) });
  await isAt(also, last);
  await client.dispose();
  await own.client.dispose();
});

test("a WebSocket has the refusals of requests, and only accepts subscriptions", async () => {
  const filter = { organizationId: world.harbour.id };
  const refusal = async (person: Pick<Person, "token">, query: string, variables = {}) => {
    const params = person.token ? { headers: { Authorization: `Bearer ${person.token}` } } : undefined;
    const { client } = socketOf({ connectionParams: params });
    const attempt = listenTo(client, query, variables);
    await until(() => attempt.isClosed);
    await client.dispose();
    return attempt.errors?.[0]?.extensions?.code;
  };
  expect(await refusal({ token: null } as never, eventsOf, { filter })).toBe("UNAUTHENTICATED");
  expect(await refusal({ token: "x".repeat(40) }, eventsOf, { filter })).toBe("UNAUTHENTICATED");
  expect(await refusal(world.olga, eventsOf, { filter })).toBe("NOT_FOUND");
  expect(await refusal(world.owen, "subscription { shoes }")).toBe("BAD_USER_INPUT");
  expect(await refusal(world.owen, "{ viewer { id } }")).toBe("BAD_USER_INPUT");
  const company = `mutation ($id: ID!) { updateLead(input: { id: $id, company: "By socket" }) { id } }`;
  expect(await refusal(world.owen, company, { id: world.leads.maxs.id })).toBe("BAD_USER_INPUT");
  const { lead } = await world.owen.get("query ($id: ID!) { lead(id: $id) { company } }", {
    id: world.leads.maxs.id,
  });
  expect(lead.company).not.toBe("By socket");
  // Another protocol, another path, and a missing connection_init.
  const address = world.url.replace(/^https/, "wss");
  const open = (url: string, protocol: string) => new WebSocket(url, protocol, { rejectUnauthorized: false });
  const fault = async (socket: WebSocket) => String((await once(socket, "error"))[0]);
  expect(await fault(open(address, "graphql-ws"))).toMatch(/subprotocol/);
  const elsewhere = address.replace("/graphql", "/other");
  expect(await fault(open(elsewhere, "graphql-transport-ws"))).toMatch("404");
  const hasty = open(address, "graphql-transport-ws");
  await once(hasty, "open");
  hasty.send(JSON.stringify({ id: "1", type: "subscribe", payload: { query: eventsOf } }));
  expect((await once(hasty, "close"))[0]).toBe(4401);
});

test("a revoked token ends its WebSocket subscriptions, and closed connections are removed", async () => {
  const { createAccessToken: token } = await world.owen.get(
    `mutation { createAccessToken(input: { name: "Wall" }) { id token } }`,
  );
  const { client } = socketOf({ connectionParams: { authorization: `Bearer ${token.token}` } });
  const subscription = listenTo(client, eventsOf, { filter: { organizationId: world.harbour.id } });
  await isAt(subscription, await head());
  await world.owen.get(`mutation ($id: ID!) { revokeAccessToken(input: { id: $id }) { id } }`, {
    id: token.id,
  });
  await until(() => subscription.isComplete);
  expect(subscription.results.at(-1).errors[0].extensions.code).toBe("UNAUTHENTICATED");
  // Connections that were closed without a message no longer count for the viewer.
  for (let n = 0; n < 3; n += 1) {
    const gone = socketOf({ connectionParams: { authorization: `Bearer ${world.max.token}` } });
    for (let m = 0; m < 40; m += 1)
      listenTo(gone.client, eventsOf, { filter: { organizationId: world.harbour.id } });
    await until(() => opened.slice(-40).every(({ results }) => results.length > 0));
    gone.client.terminate();
    await until(async () => {
      const probe = await subscribe(world.max, eventsOf, { filter: { organizationId: world.harbour.id } });
      probe.close();
      return probe.type?.startsWith("text/event-stream");
    });
  }
});
