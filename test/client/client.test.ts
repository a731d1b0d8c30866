/** The client against the service. Network failures are simulated by the `fetch` that it is given. */
import { createHash, randomUUID } from "node:crypto";
import * as tls from "node:tls";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { getIntrospectionQuery, parse, print } from "graphql";
import {
  createClient,
  type ClientOptions,
  isPlatError,
  type TypedDocument,
} from "../../packages/client/src/index.ts";
import { followEvents } from "../../packages/client/src/events.ts";
import { testCertificate } from "../harness/certificate.ts";
import { picture } from "../harness/upload.ts";
import { startWorld, type World } from "../harness/world.ts";

let world: World;
let url: string;
const trusted = tls.getCACertificates("default");
beforeAll(async () => {
  const [{ cert }, started] = await Promise.all([testCertificate(), startWorld()]);
  tls.setDefaultCACertificates([...trusted, cert]);
  world = started;
  url = world.url.replace("127.0.0.1", "localhost");
});
afterAll(async () => {
  tls.setDefaultCACertificates(trusted);
  await world.stop();
});

type Variables = Record<string, unknown>;
const document = (text: string) => text as TypedDocument<any, Variables>;
const create = document(
  "mutation ($input: CreateLeadInput!) { createLead(input: $input) { id name version project { title } } }",
);
const clientOf = (options: Partial<ClientOptions> = {}) =>
  createClient({ url, token: world.owen.token, retries: { baseMs: 1 }, ...options });
const lead = (name: string = randomUUID()) => ({ input: { projectId: world.project.id, name } });
const leadsNamed = async (name: string) =>
  (await world.owner.query("select id from app_public.leads where name = $1", [name])).rows.length;
/** A fetch that first follows the script, then calls the real one. */
function played(...script: ((...request: Parameters<typeof fetch>) => Promise<Response>)[]) {
  const keys: (string | null)[] = [];
  const play: typeof fetch = (to, init) => {
    keys.push(new Headers(init?.headers).get("idempotency-key"));
    return (script.shift() ?? fetch)(to, init);
  };
  return { fetch: play, keys };
}
const refusal =
  (status: number, body: string, headers: Record<string, string> = {}) =>
  () =>
    Promise.resolve(new Response(body, { status, headers }));

test("an operation returns its data, by text, by parsed document, and with its whole response", async () => {
  const plat = clientOf();
  const viewer = document("query Viewer { viewer { id } }");
  expect(await plat.request(viewer)).toEqual({ viewer: { id: world.owen.id } });
  expect(await plat.request(parse(String(viewer)) as typeof viewer)).toEqual({
    viewer: { id: world.owen.id },
  });
  const apart = parse(String(viewer), { noLocation: true }) as typeof viewer;
  await expect(plat.request(apart)).rejects.toThrow("give createClient `print` of graphql");
  expect(await clientOf({ print }).request(apart)).toEqual({ viewer: { id: world.owen.id } });
  const answer = await plat.execute(viewer, {}, { headers: { "X-Request-Id": "of-a-test" } });
  expect(answer).toMatchObject({ errors: [], status: 200, requestId: "of-a-test", replayed: false });
  expect(answer.extensions).toHaveProperty("cost");
  expect(answer.position).toBe(answer.extensions["position"]);
  expect((await plat.execute(viewer, {}, { notBefore: answer.position! })).errors).toEqual([]);
  await expect(plat.execute(viewer, {}, { notBefore: "nowhere" })).resolves.toMatchObject({ status: 400 });
  // The runtime decompresses compressed responses.
  const { __schema: schema } = await plat.request(document(getIntrospectionQuery()));
  expect(schema.types.length).toBeGreaterThan(500);
});

test("a mutation whose response is lost is executed once", async () => {
  const name = randomUUID();
  const { fetch: losing, keys } = played(async (to, init) => {
    await (await fetch(to, init)).text();
    throw new TypeError("fetch failed");
  });
  const answer = await clientOf({ fetch: losing }).execute(create, lead(name));
  expect(answer.data.createLead).toMatchObject({ name, project: { title: "Harbour View" } });
  expect([answer.replayed, await leadsNamed(name)]).toEqual([true, 1]);
  expect(keys).toEqual([keys[0], keys[0]]);
  expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
  // Two calls create two leads, unless the caller gives the same key.
  const plat = clientOf();
  await plat.request(create, lead(name));
  expect(await leadsNamed(name)).toBe(2);
  const idempotencyKey = randomUUID();
  for (let n = 0; n < 2; n++) await plat.request(create, lead(`own ${name}`), { idempotencyKey });
  expect(await leadsNamed(`own ${name}`)).toBe(1);
});

test("retries transient errors, and reports others and timeouts immediately", async () => {
  const viewer = document("{ viewer { id } }");
  const busy = JSON.stringify({
    errors: [{ message: "Busy.", extensions: { code: "RATE_LIMITED", retryAfterSeconds: 0.001 } }],
  });
  const proxy = refusal(502, "<html>Bad gateway</html>");
  const passing = played(refusal(429, busy), proxy, refusal(200, busy));
  expect(await clientOf({ fetch: passing.fetch }).request(viewer)).toEqual({ viewer: { id: world.owen.id } });
  expect(passing.keys).toEqual([null, null, null, null]);

  const outcomeOf = async (options: Partial<ClientOptions>, ...script: Parameters<typeof played>) => {
    const { fetch: playing, keys } = played(...script);
    const error = await clientOf({ ...options, fetch: playing })
      .request(viewer)
      .catch((thrown: unknown) => thrown);
    return isPlatError(error) && [error.code, error.status, keys.length];
  };
  expect(await outcomeOf({}, proxy, proxy, proxy, proxy)).toEqual(["UNEXPECTED_ANSWER", 502, 4]);
  expect(await outcomeOf({ retries: false }, proxy)).toEqual(["UNEXPECTED_ANSWER", 502, 1]);
  expect(await outcomeOf({}, refusal(429, busy, { "retry-after": "900" }))).toEqual(["RATE_LIMITED", 429, 1]);
  expect(await outcomeOf({}, refusal(404, "Nothing here"))).toEqual(["UNEXPECTED_ANSWER", 404, 1]);
  const silent = () =>
    new Promise<Response>((_, fail) => AbortSignal.timeout(5).addEventListener("abort", fail));
  expect(await outcomeOf({ retries: { attempts: 2, baseMs: 1 } }, silent, silent)).toEqual([
    "NETWORK_ERROR",
    0,
    2,
  ]);
  const late = createClient({ url, timeoutMs: 1, retries: false, fetch: (to, init) => fetch(to, init) });
  await expect(late.request(viewer)).rejects.toMatchObject({
    code: "NETWORK_ERROR",
    message: "The service did not answer in time.",
  });
  const signal = AbortSignal.abort(new Error("The screen was left."));
  await expect(clientOf().request(viewer, {}, { signal })).rejects.toThrow("The screen was left.");
});

test("errors are identified by their code, and have its properties", async () => {
  const plat = clientOf();
  const { createLead } = await plat.request(create, lead());
  const update = document("mutation ($input: UpdateLeadInput!) { viewer: updateLead(input: $input) { id } }");
  const outdated = await plat
    .request(update, { input: { id: createLead.id, company: "Acme", expectedVersion: 99 } })
    .catch((thrown: unknown) => thrown);
  expect(isPlatError(outdated, "VERSION_MISMATCH") && outdated.details.currentVersion).toBe(1);
  expect(isPlatError(outdated, "CONFLICT")).toBe(false);
  const bad = await plat
    .request(create, { input: { projectId: world.project.id, name: "A", email: "no", phone: "x" } })
    .catch((thrown: unknown) => thrown);
  expect(isPlatError(bad, "BAD_USER_INPUT") && Object.keys(bad.fieldMessages)).toEqual(["email", "phone"]);
  const partly = await plat
    .request(document("{ viewer { id } leads(first: -1) { id } }"))
    .catch((thrown: unknown) => thrown);
  expect(isPlatError(partly) && [partly.code, partly.path, partly.data]).toEqual([
    "BAD_USER_INPUT",
    ["leads"],
    { viewer: { id: world.owen.id }, leads: null },
  ]);
  const foreign = await clientOf({ token: world.olga.token })
    .request(update, { input: { id: createLead.id, company: "Summit" } })
    .catch((thrown: unknown) => thrown);
  expect(isPlatError(foreign, "NOT_FOUND") && [foreign.status, foreign.path, foreign.data]).toEqual([
    200,
    ["viewer"],
    { viewer: null },
  ]);
});

test("a new token is requested once after a refusal", async () => {
  const viewer = document("{ viewer { id } }");
  const requests: boolean[] = [];
  const token = ({ refused }: { refused: boolean }) => {
    requests.push(refused);
    return refused ? world.owen.token : "one.that.expired";
  };
  expect(await clientOf({ token }).request(viewer)).toEqual({ viewer: { id: world.owen.id } });
  expect(requests).toEqual([false, true]);
  await expect(clientOf({ token: () => "never.any.good" }).request(viewer)).rejects.toMatchObject({
    code: "UNAUTHENTICATED",
    status: 401,
  });
  await expect(clientOf({ token: "fixed.and.bad" }).request(viewer)).rejects.toMatchObject({ status: 401 });
});

test("lists are read to their end, by cursor and by offset", async () => {
  const source = (
    await clientOf().request(
      document("mutation ($input: CreateLeadSourceInput!) { createLeadSource(input: $input) { id } }"),
      { input: { projectId: world.project.id, name: `Fair ${randomUUID()}` } },
    )
  ).createLeadSource.id;
  const names = Array.from({ length: 7 }, (_, n) => `Visitor ${n}`);
  for (const name of names)
    await clientOf().request(create, { input: { ...lead(name).input, sourceId: source } });
  const filter = { leadSourceIds: [source] };
  const connection = document(
    "query ($filter: LeadsFilter, $first: Int, $after: Cursor) { leadsConnection(filter: $filter, first: $first, after: $after, orderBy: [ID_ASC]) { nodes { name } pageInfo { hasNextPage endCursor } } }",
  );
  const list = document(
    "query ($filter: LeadsFilter, $first: Int, $offset: Int) { leads(filter: $filter, first: $first, offset: $offset, orderBy: [ID_ASC]) { name } }",
  );
  for (const each of [connection, list]) {
    const { fetch: counting, keys } = played();
    const plat = clientOf({ fetch: counting });
    const sizes: number[] = [];
    for await (const page of plat.pages(each, { filter, first: 3 })) sizes.push(page.length);
    expect([sizes, keys.length]).toEqual([[3, 3, 1], 3]);
    const found: string[] = [];
    for await (const { name } of plat.items(each, { filter, first: 3 }) as AsyncIterable<{ name: string }>)
      found.push(name);
    expect(found).toEqual(names);
    // Leaving the loop stops reading.
    for await (const _ of plat.items(each, { filter, first: 3 })) break;
    expect(keys.length).toBe(3 + 3 + 1);
  }
  const without = document("{ leadsConnection(first: 1) { nodes { name } } }");
  await expect(clientOf().pages(without).next()).resolves.toMatchObject({ done: false });
  const pages = clientOf().pages(without);
  await pages.next();
  await expect(pages.next()).rejects.toThrow("Select pageInfo");
});

test("files are uploaded with progress, and stored once if the response is lost", async () => {
  const file = new File([new Uint8Array(await picture("png", 1_200, 900))], "lobby.png");
  const upload = document(
    "mutation ($input: UploadProjectImageInput!) { uploadProjectImage(input: $input) { id filename checksum } }",
  );
  const input = { projectId: world.project.id, alt: "The lobby", file };
  const reported: number[] = [];
  const { uploadProjectImage: image } = await clientOf().request(
    upload,
    { input },
    { onProgress: ({ sent, total }) => reported.push(sent / total) },
  );
  expect(image.filename).toBe("lobby.png");
  expect(reported.at(-1)).toBe(1);
  expect(reported).toEqual(reported.toSorted((a, b) => a - b));
  const { fetch: losing } = played(async (to, init) => {
    await (await fetch(to, init)).text();
    throw new TypeError("fetch failed");
  });
  const before = (await world.owner.query("select id from app_public.project_images")).rows.length;
  const again = await clientOf({ fetch: losing }).execute(upload, { input });
  expect([again.errors, again.replayed]).toEqual([[], true]);
  expect((await world.owner.query("select id from app_public.project_images")).rows.length).toBe(before + 1);
});

test("registered documents are requested by their ids", async () => {
  const text = "query Registered { viewer { id firstName } }";
  const plat = clientOf({ registered: true });
  await expect(plat.request(document(text))).rejects.toMatchObject({ code: "NOT_FOUND" });
  const id = `sha256:${createHash("sha256").update(text).digest("hex")}`;
  await world.owner.query("select app_private.register_document($1, $2)", [id, text]);
  expect(await plat.request(document(text))).toEqual({ viewer: { id: world.owen.id, firstName: "Owen" } });
});

/** A stream whose connection is lost after this number of messages. */
const cut =
  (messages: number): typeof fetch =>
  async (to, init) => {
    const response = await fetch(to, init);
    let left = messages;
    const cutting = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        if (left-- > 0) controller.enqueue(chunk);
        else controller.error(new TypeError("terminated"));
      },
    });
    return new Response(response.body!.pipeThrough(cutting), response);
  };

test("events arrive once and in order, despite lost connections", async () => {
  const before = await world.owner.query(
    "select last_sequence from app_private.event_counters where stream_id = $1",
    [world.harbour.id],
  );
  const plat = clientOf();
  const wanted: string[] = [];
  const enter = async () => {
    const { createLead } = await plat.request(create, lead());
    wanted.push(createLead.id);
  };
  for (let n = 0; n < 3; n++) await enter();
  const completed: string[] = [];
  // The URL contains the position to resume from.
  const requests: (string | null)[] = [];
  const script = [cut(2), refusal(503, "", { "retry-after": "0" }), cut(3)];
  const losing: typeof fetch = (to, init) => {
    requests.push(new URL(String(to)).searchParams.get("after"));
    return (script.shift() ?? fetch)(to, init);
  };
  const leaving = new AbortController();
  const found: string[] = [];
  const sequences: bigint[] = [];
  for await (const event of clientOf({ fetch: losing }).events({
    organizationId: world.harbour.slug,
    after: before.rows[0].last_sequence,
    names: ["lead.created"],
    signal: leaving.signal,
    onComplete: (sequence) => completed.push(sequence),
  })) {
    found.push(event.subjectId);
    sequences.push(BigInt(event.sequence));
    if (found.length < 6) await enter();
    if (found.length === wanted.length) leaving.abort();
  }
  expect(found).toEqual(wanted);
  expect(sequences).toEqual([...new Set(sequences)].toSorted((a, b) => (a < b ? -1 : 1)));
  expect(requests.length).toBeGreaterThanOrEqual(3);
  expect(requests[0]).toBe(before.rows[0].last_sequence);
  expect(completed.length).toBeGreaterThan(0);
});

test("reports a refused organization, and requests a new token once after expiry", async () => {
  const follow = (options: Partial<ClientOptions>) =>
    clientOf(options).events({ organizationId: world.harbour.id }).next();
  await expect(follow({ token: world.olga.token })).rejects.toMatchObject({ code: "NOT_FOUND", status: 404 });
  await expect(follow({ token: "bad.and.fixed" })).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
  const requests: boolean[] = [];
  const leaving = new AbortController();
  const events = clientOf({
    token: ({ refused }) => {
      requests.push(refused);
      return refused ? world.owen.token : "bad.at.first";
    },
  }).events({ organizationId: world.harbour.id, signal: leaving.signal, onComplete: () => leaving.abort() });
  expect(await events.next()).toEqual({ done: true, value: undefined });
  expect(requests).toEqual([false, true]);
});

test("a silent connection is closed, and opened again", async () => {
  let connections = 0;
  const silentFirst: typeof fetch = (to, init) => {
    connections += 1;
    if (connections > 1) return fetch(to, init);
    const silent = new ReadableStream<Uint8Array>({
      start: (controller) =>
        init!.signal!.addEventListener("abort", () => controller.error(init!.signal!.reason)),
    });
    return Promise.resolve(new Response(silent));
  };
  const leaving = new AbortController();
  const events = followEvents(
    { organizationId: world.harbour.id, signal: leaving.signal, onComplete: () => leaving.abort() },
    {
      url: url.replace("/graphql", "/events/stream"),
      headers: {},
      fetch: silentFirst,
      silenceMs: 50,
      token: () => Promise.resolve(world.owen.token),
    },
  );
  expect(await events.next()).toEqual({ done: true, value: undefined });
  expect(connections).toBeGreaterThan(1);
});
