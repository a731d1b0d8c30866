import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import type { IncomingHttpHeaders } from "node:http";
import { request } from "node:https";
import { startApi, type Person } from "../harness/api.ts";
import { openStream, type OpenStream } from "../harness/eventStream.ts";
import { cast, createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { until } from "../harness/until.ts";
import { join, programOf } from "../harness/world.ts";

let world: Portfolio;
const opened: OpenStream[] = [];

async function open(
  person: Pick<Person, "token">,
  parameters: Record<string, string> = {},
  headers?: Record<string, string>,
): Promise<OpenStream> {
  const given = { organizationId: world.harbour.id, ...parameters };
  const stream = await openStream(world.url, person.token, given, headers);
  opened.push(stream);
  return stream;
}

const head = async (): Promise<number> =>
  Number(
    (
      await world.owner.query("select last_sequence from app_private.event_counters where stream_id = $1", [
        world.harbour.id,
      ])
    ).rows[0].last_sequence,
  );

/** What eventsConnection shows of the organization, as messages have it. */
async function feedOf(person: Person, after = 0, filter = ""): Promise<any[]> {
  // Without a project it is of one's own organizations alone.
  if (person === world.sam || person === world.bob) filter += `projectId: "${world.project.id}"`;
  const { eventsConnection } = await person.get(
    `{ eventsConnection(first: 1000, filter: { organizationId: "${world.harbour.id}", afterSequence: "${after}" ${filter} }) {
      nodes { id name sequence organizationId projectId subjectType subjectId changes data } } }`,
  );
  return eventsConnection.nodes.map(({ name, ...rest }: any) => ({ type: name, ...rest }));
}

const told = ({ events }: OpenStream) =>
  events.map(({ id, type, sequence, organizationId, projectId, subjectType, subjectId, changes, data }) => ({
    id,
    type,
    sequence,
    organizationId,
    projectId,
    subjectType,
    subjectId,
    changes,
    data,
  }));

const isAt = (stream: OpenStream, sequence: number) =>
  until(
    () => Math.max(stream.position, Number(stream.lastId ?? -1)),
    (found) => found >= sequence,
  );

async function update(person: Person, id: string, company: string): Promise<void> {
  await person.get(
    `mutation ($id: ID!, $company: String) { updateLead(input: { id: $id, company: $company }) { id } }`,
    {
      id,
      company,
    },
  );
}

beforeAll(async () => {
  world = await startPortfolio(undefined, {
    streamLimits: { total: 45, ofOrganization: 40, ofViewer: 30, ofAddress: 44, readWithinMs: 300 },
  });
});

afterEach(async () => {
  for (const stream of opened) stream.close();
  await until(() => opened.every(({ isClosed }) => isClosed));
  opened.length = 0;
});

afterAll(() => world.stop());

/** Removes what a program says of the request, which differs from one to the next. */
const coded = ({ status, refusal }: OpenStream) => [status, refusal?.extensions.code];

describe("visibility", () => {
  test("everybody is told what eventsConnection shows them, before and while the stream is open, and nothing else", async () => {
    const people: Record<string, Person> = cast(world);
    people.program = await programOf(world, world.ada, {
      scopes: ["org.member", "lead.read"],
      readOnly: true,
    });
    people.otherScopes = await programOf(world, world.owen, { scopes: ["lead.read"] });
    people.otherOrganization = await programOf(world, world.olga, { organizationId: world.summit.id });
    const shown: Record<string, unknown> = {};
    const streams = new Map<string, OpenStream>();
    for (const [name, person] of Object.entries(people)) {
      const stream = await open(person, { after: "0" });
      if (stream.status === 200) streams.set(name, stream);
      else shown[name] = coded(stream);
    }
    await update(world.owen, world.leads.open.id, "While open");
    await update(world.max, world.leads.maxs.id, "Own");
    await update(world.mia, world.leads.mias.id, "Of somebody else");
    await createLead(world.sam, { projectId: world.project.id, name: "Seller's", email: "s2@example.com" });
    const last = await head();
    for (const [name, stream] of streams) {
      await isAt(stream, last);
      const feed = await feedOf(people[name]!);
      expect(told(stream)).toEqual(feed);
      shown[name] = feed.length;
    }
    expect(shown).toMatchObject({
      member: expect.any(Number),
      seller: expect.any(Number),
      builder: 2,
      program: expect.any(Number),
      anonymous: [401, "UNAUTHENTICATED"],
      outsider: [404, "NOT_FOUND"],
      otherScopes: [404, "NOT_FOUND"],
      otherOrganization: [404, "NOT_FOUND"],
    });
    // An owner sees all there is; a member not the leads of others in a project of own leads, a program what its scopes are of.
    const { owner, admin, member, seller, program } = shown as Record<string, number>;
    expect([owner, admin]).toEqual([last, last]);
    expect(member).toBeLessThan(last);
    expect(seller).toBeLessThan(member!);
    expect(program).toBeLessThan(last);
  });

  test("a filter is that of eventsConnection; what it leaves out is behind the mark", async () => {
    const filters: [Record<string, string>, string][] = [
      [{ names: "lead.*" }, `names: ["lead.*"]`],
      [{ names: "lead.created, project.created" }, `names: ["lead.created", "project.created"]`],
      [{ subjectType: "project" }, `subjectType: "project"`],
      [{ subjectId: world.leads.open.id }, `subjectId: "${world.leads.open.id}"`],
      [{ projectId: world.quiet.slug, names: "*" }, `projectId: "${world.quiet.slug}", names: ["*"]`],
    ];
    const streams = await Promise.all(filters.map(([given]) => open(world.owen, { after: "3", ...given })));
    await update(world.owen, world.leads.open.id, "Filtered");
    const last = await head();
    for (const [i, [, filter]] of filters.entries()) {
      const stream = streams[i]!;
      await isAt(stream, last);
      const feed = await feedOf(world.owen, 3, filter);
      expect(feed.length).toBeGreaterThan(0);
      expect(told(stream)).toEqual(feed);
    }
  });

  test("a stream begins with the present, or behind what its reader has; the header of one that comes back counts", async () => {
    const last = await head();
    const [present, back] = await Promise.all([
      open(world.owen, { organizationId: world.harbour.slug }),
      open(world.owen, { after: "0" }, { "last-event-id": String(last - 2) }),
    ]);
    await isAt(present!, last);
    await isAt(back!, last);
    expect(present!.messages).toEqual([
      { event: "complete", id: String(last), data: { sequence: String(last) } },
    ]);
    expect(back!.events.map(({ sequence }) => sequence)).toEqual([String(last - 1), String(last)]);
    expect(present!.headers).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "access-control-allow-origin": "*",
    });
    await update(world.owen, world.leads.open.id, "Present");
    await isAt(present!, last + 1);
    expect(present!.lastId).toBe(String(last + 1));
    expect(told(present!)).toEqual(await feedOf(world.owen, last));
  });

  test("what cannot be is refused with what to do", async () => {
    const refusals = {
      none: await openStream(world.url, world.owen.token, {}),
      unknown: await open(world.owen, { organizationId: "no-such-organization" }),
      ahead: await open(world.owen, { after: String((await head()) + 1) }),
      number: await open(world.owen, { after: "1e3" }),
      parameter: await open(world.owen, { limit: "3" }),
      project: await open(world.owen, { projectId: "x".repeat(101) }),
      token: await open({ token: "plat_at_nothing" }),
      type: await open(world.owen, {}, { accept: "application/json" }),
    };
    expect(
      Object.fromEntries(Object.entries(refusals).map(([name, stream]) => [name, coded(stream)])),
    ).toEqual({
      none: [400, "BAD_USER_INPUT"],
      unknown: [404, "NOT_FOUND"],
      ahead: [400, "BAD_USER_INPUT"],
      number: [400, "BAD_USER_INPUT"],
      parameter: [400, "BAD_USER_INPUT"],
      project: [400, "BAD_USER_INPUT"],
      token: [401, "UNAUTHENTICATED"],
      type: [406, "BAD_USER_INPUT"],
    });
    expect((await fetchOf("POST", "/events/stream")).status).toBe(405);
  });
});

function fetchOf(
  method: string,
  path: string,
  token?: string | null,
): Promise<{ status: number; headers: IncomingHttpHeaders; body: any }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      new URL(path, world.url),
      {
        method,
        rejectUnauthorized: false,
        agent: false,
        headers: token ? { authorization: `Bearer ${token}` } : {},
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => (text += part));
        response.on("end", () =>
          resolve({
            status: response.statusCode!,
            headers: response.headers,
            body: text && JSON.parse(text),
          }),
        );
      },
    );
    outgoing.on("error", reject).end();
  });
}

describe("once, and all of it", () => {
  test("streams that begin anywhere while many write are told each event once, in the order of commits", async () => {
    const begun = await head();
    let writing = true;
    const writers = Array.from({ length: 8 }, async (_, writer) => {
      const person = writer % 2 ? world.owen : world.ada;
      for (let i = 0; i < 12; i++) {
        const id = writer < 4 ? world.leads.open.id : world.leads.maxs.id;
        // Two writers of one lead wait for each other, those of one organization for its sequence.
        await update(person, id, `Writer ${writer} ${i}`);
      }
    });
    const streams: OpenStream[] = [];
    const isWriting = () => writing;
    const done = Promise.all(writers).finally(() => (writing = false));
    for (let i = 0; i < 25 && isWriting(); i++) {
      const present = await head();
      streams.push(
        await open(i % 3 ? world.owen : world.ada, { after: String(Math.floor((present * i) / 25)) }),
      );
    }
    await done;
    const last = await head();
    expect(last).toBeGreaterThan(begun + 90);
    for (const [i, stream] of streams.entries()) {
      await isAt(stream, last);
      const sequences = stream.events.map(({ sequence }) => Number(sequence));
      const first = sequences[0]!;
      // An owner and an admin see all, so there is no gap.
      expect(sequences).toEqual(Array.from({ length: last - first + 1 }, (_, n) => first + n));
      expect(i === 0 ? first : 1).toBe(1);
    }
  });

  test("what is committed is read once for all who may read the same, however many streams they have", async () => {
    const sessions = await Promise.all([
      ...Array.from({ length: 12 }, () => open(world.owen)),
      ...Array.from({ length: 8 }, () => open(world.owen, { names: "lead.updated" })),
      ...Array.from({ length: 6 }, () => open(world.max)),
    ]);
    const before = await head();
    await Promise.all(sessions.map((stream) => isAt(stream, before)));
    const { texts } = await world.statements(async () => {
      await update(world.owen, world.leads.open.id, "Counted");
      await Promise.all(sessions.map((stream) => isAt(stream, before + 1)));
    });
    const reads = texts.filter((text) => text.includes("read_events"));
    expect(reads.length).toBeGreaterThan(0);
    expect(reads.length).toBeLessThanOrEqual(2);
    for (const stream of sessions) expect(stream.events).toHaveLength(1);
  });

  test("a viewer whose events cannot be read does not keep others from theirs", async () => {
    const [stuck, ...others] = await Promise.all(
      [world.max, world.owen, world.ada, world.mia].map((person) => open(person)),
    );
    const before = await head();
    await Promise.all([stuck!, ...others].map((stream) => isAt(stream, before)));
    await world.owner.query(
      `create policy failing on app_public.events as restrictive for select to plat_user using (
         case when app_public.current_user_id() = '${world.max.id}'
           then 1 / (length(current_setting('plat.user_id')) - 36) = 1 else true end)`,
    );
    try {
      await update(world.owen, world.leads.open.id, "Unreadable");
      await Promise.all(others.map((stream) => isAt(stream, before + 1)));
      expect(stuck!.position).toBe(before);
    } finally {
      await world.owner.query("drop policy failing on app_public.events");
    }
    // It is read again by itself.
    await isAt(stuck!, before + 1);
  });
});

describe("who may no longer read", () => {
  const lastWord = async (stream: OpenStream) => {
    await until(() => stream.isClosed);
    return stream.end?.code;
  };

  test("a revoked token, a session that was ended, and a lost membership end the streams", async () => {
    const { createAccessToken } = await world.owen.get(
      `mutation { createAccessToken(input: { name: "Reader" }) { id token } }`,
    );
    const robot = world.person(createAccessToken.token);
    const guest = await world.signUp("Gus Guest");
    await join(world, world.harbour.id, guest, "MEMBER");
    const [kept, revoked, member] = await Promise.all([open(world.owen), open(robot), open(guest)]);
    const last = await head();
    for (const stream of [kept!, revoked!, member!]) await isAt(stream, last);
    await world.owen.get(`mutation ($id: ID!) { revokeAccessToken(input: { id: $id }) { id } }`, {
      id: createAccessToken.id,
    });
    expect(await lastWord(revoked!)).toBe("UNAUTHENTICATED");
    await world.owner.query("delete from app_public.organization_user_connections where user_id = $1", [
      guest.id,
    ]);
    expect(await lastWord(member!)).toBe("FORBIDDEN");
    expect(kept!.isClosed).toBe(false);
    await update(world.owen, world.leads.open.id, "After");
    expect(revoked!.events).toEqual([]);
    const leaver = await world.signUp("Lea Leaver");
    await join(world, world.harbour.id, leaver, "MEMBER");
    const left = await open(leaver);
    await leaver.get("mutation { logout(input: {}) { id } }");
    expect(await lastWord(left)).toBe("UNAUTHENTICATED");
  });

  test("a role that is lowered narrows the stream at once", async () => {
    const andy = await world.signUp("Andy Admin");
    await join(world, world.harbour.id, andy, "ADMIN");
    const stream = await open(andy);
    await update(world.mia, world.leads.mias.id, "As an admin");
    await isAt(stream, await head());
    expect(stream.events).toHaveLength(1);
    await world.owner.query(
      "update app_public.organization_user_connections set role = 'MEMBER' where user_id = $1",
      [andy.id],
    );
    await update(world.mia, world.leads.mias.id, "As a member");
    const last = await head();
    await until(
      () => stream.position,
      (position) => position >= last,
    );
    expect(stream.events.filter(({ subjectId }) => subjectId === world.leads.mias.id)).toHaveLength(1);
    expect(stream.isClosed).toBe(false);
  });
});

describe("tickets", () => {
  const ticketOf = async (person: Person): Promise<string> => {
    const { status, body } = await fetchOf("POST", "/events/tickets", person.token);
    expect(status).toBe(201);
    expect(new Date(body.expiresAt).getTime()).toBeLessThanOrEqual(Date.now() + 60_000);
    return body.ticket;
  };

  test("a ticket opens one stream in the name of its token, within a minute", async () => {
    const ticket = await ticketOf(world.max);
    const stream = await open({ token: null }, { ticket, after: "0" });
    await isAt(stream, await head());
    expect(told(stream)).toEqual(await feedOf(world.max));
    expect(coded(await open({ token: null }, { ticket }))).toEqual([401, "UNAUTHENTICATED"]);
    const late = await ticketOf(world.max);
    await world.owner.query("update app_private.stream_tickets set expires_at = now()");
    expect(coded(await open({ token: null }, { ticket: late }))).toEqual([401, "UNAUTHENTICATED"]);
    expect(coded(await open({ token: null }, { ticket: "plat_ticket_x" }))).toEqual([401, "UNAUTHENTICATED"]);
    expect((await fetchOf("POST", "/events/tickets")).status).toBe(401);
    const { rows } = await world.owner.query(
      "select ticket_sha256::text as text from app_private.stream_tickets",
    );
    expect(JSON.stringify(rows)).not.toContain(late);
  });

  test("a ticket ends with its token, as does the stream that it has opened", async () => {
    const { createAccessToken } = await world.owen.get(
      `mutation { createAccessToken(input: { name: "Page", readOnly: true, scopes: ["org.member", "audit.read"] }) { id token } }`,
    );
    const page = world.person(createAccessToken.token);
    const stream = await open({ token: null }, { ticket: await ticketOf(page) });
    const unused = await ticketOf(page);
    await world.owen.get(`mutation ($id: ID!) { revokeAccessToken(input: { id: $id }) { id } }`, {
      id: createAccessToken.id,
    });
    expect(coded(await open({ token: null }, { ticket: unused }))).toEqual([401, "UNAUTHENTICATED"]);
    await until(() => stream.isClosed);
    expect(stream.end).toMatchObject({ code: "UNAUTHENTICATED" });
  });
});

describe("how many", () => {
  test("streams of a viewer, an organization and an address are limited, and those of the process", async () => {
    const fill = async (person: Person, amount: number) =>
      Promise.all(Array.from({ length: amount }, () => open(person)));
    await fill(world.owen, 30);
    const viewer = await open(world.owen);
    expect(coded(viewer)).toEqual([429, "RATE_LIMITED"]);
    expect(viewer.headers["retry-after"]).toBe("10");
    await fill(world.ada, 10);
    expect(coded(await open(world.max))).toEqual([429, "RATE_LIMITED"]);
    const other = { organizationId: world.summit.id };
    for (let i = 0; i < 4; i++) expect((await open(world.olga, other)).status).toBe(200);
    const address = await open(world.olga, other);
    expect(coded(address)).toEqual([429, "RATE_LIMITED"]);
    expect(address.refusal.message).toMatch("Your network has reached the limit of 44");
    const elsewhere = await openStream(world.url, world.olga.token, other, {}, "127.0.0.9");
    opened.push(elsewhere);
    expect(elsewhere.status).toBe(200);
    const total = await openStream(world.url, world.olga.token, other, {}, "127.0.0.9");
    expect(coded(total)).toEqual([503, "UNAVAILABLE"]);
    expect(total.headers["retry-after"]).toBe("10");
    for (const stream of opened) stream.close();
    await until(async () => (await open(world.owen)).status === 200);
  });
});

test("a reader that stops reading is dropped with a code, and goes on where it was", async () => {
  const begun = await head();
  const slow = await open(world.owen);
  await isAt(slow, begun);
  slow.pause();
  // More than what the system keeps for a connection.
  const size = 80_000;
  const many = 100;
  for (let i = 0; i < many; i++)
    await world.owner.query(
      "update app_public.leads set metadata = jsonb_build_object('text', repeat(chr(97 + $2 % 26), $3)) where id = $1",
      [world.leads.open.id, i, size],
    );
  const last = await head();
  expect(last).toBe(begun + many);
  // Nobody listens for the organization any more.
  await until(async () => {
    const { rows } = await world.owner.query("select from pg_locks where classid = 7528005");
    return rows.length === 0;
  });
  slow.resume();
  await until(() => slow.isClosed);
  const back = await open(world.owen, {}, { "last-event-id": slow.lastId! });
  await isAt(back, last);
  const sequences = [...slow.events, ...back.events].map(({ sequence }) => Number(sequence));
  expect(sequences).toEqual(Array.from({ length: many }, (_, n) => begun + 1 + n));
  expect(back.events.length).toBeGreaterThan(0);
});

test("several sets of claims share a statement, and those that it has no room for are read next", async () => {
  const tokens = Array.from({ length: 8 }, () =>
    programOf(world, world.owen, { scopes: ["org.member", "lead.read"], readOnly: true }),
  );
  const people = [world.owen, ...(await Promise.all(tokens)), world.max, world.ada];
  const streams = await Promise.all(people.map((person) => open(person)));
  const before = await head();
  await Promise.all(streams.map((stream) => isAt(stream, before)));
  const { texts } = await world.statements(async () => {
    await update(world.owen, world.leads.open.id, "Shared");
    await Promise.all(streams.map((stream) => isAt(stream, before + 1)));
  });
  const reads = texts.filter((text) => text.includes("read_events"));
  expect(reads.length).toBeGreaterThan(0);
  // Two statements, and two more if the check for missed commits coincides.
  expect(reads.length).toBeLessThanOrEqual(4);
  // More than one statement takes: 12 events of 80 kB for each of 11 sets of claims.
  await world.owner.query(
    `do $$ begin for n in 1..12 loop
       update app_public.leads set metadata = jsonb_build_object('text', repeat(chr(97 + n), 80000))
         where id = '${world.leads.open.id}';
     end loop; end $$`,
  );
  const last = before + 13;
  await Promise.all(streams.map((stream) => isAt(stream, last)));
  for (const [index, stream] of streams.entries())
    expect(told(stream)).toEqual(await feedOf(people[index]!, before));
  expect(streams[0]!.events).toHaveLength(13);
});

test("the stop of the service ends streams with a code, and says when to come back", async () => {
  const api = await startApi(world.database);
  const given = { organizationId: world.harbour.id };
  const stream = await openStream(api.url, world.owen.token, given);
  await isAt(stream, await head());
  await api.stop();
  await until(() => stream.isClosed);
  expect(stream.end).toMatchObject({ code: "UNAVAILABLE", retryAfterSeconds: 1 });
  expect(stream.retry).toBeGreaterThanOrEqual(500);
});
