/** Moving an organization between two installations with separate database clusters, while its members write. */
import { randomUUID } from "node:crypto";
import { Agent } from "node:https";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { loadSeal } from "../../src/auth/authKeys.ts";
import { loadConfig } from "../../src/base/config.ts";
import { apiUrlOf } from "../../src/database/pooler.ts";
import { onConnection } from "../../src/database/onConnection.ts";
import { withDatabase } from "../../src/database/running.ts";
import { createFileStore } from "../../src/providers/files/index.ts";
import { killChild, startProgram } from "../harness/child.ts";
import { demoFolder } from "../harness/demoFolder.ts";
import { post, signIn } from "../harness/load.ts";
import { migratedFolder, runToExit, startService, type Service } from "../harness/service.ts";
import { until } from "../harness/until.ts";
import { startReceiver, type Receiver } from "../webhooks/receiver.ts";

const slug = "larkfield-homes";
const stack = new AsyncDisposableStack();
let folders: { source: string; target: string };
let source: Service;
let target: Service;
let settings: string;
let viewer: Awaited<ReturnType<typeof signIn>>;
let receiver: Receiver;

/** Runs SQL in the database of an installation, as its owner. */
const sql = <Row extends object>(folder: string, text: string, values: unknown[] = []): Promise<Row[]> =>
  withDatabase(loadConfig({ DATA_DIR: folder }, ["--migrate-only"]), (url) =>
    onConnection(url, async (client) => (await client.query<Row>(text, values)).rows),
  );
const env = () => ({ DATA_DIR: folders.source });
const run = (...args: string[]) => runToExit({ entry: "src/cli/organizations.ts", args, env: env() });

beforeAll(async () => {
  const [from, to] = [stack.use(await demoFolder()), stack.use(await migratedFolder())];
  folders = { source: from.path, target: to.path };
  [source, target] = (await Promise.all(
    Object.values(folders).map((DATA_DIR) =>
      startService({ env: { DATA_DIR, LOOPBACK_WEBHOOKS: "1" }, withinMs: 300_000 }),
    ),
  )) as [Service, Service];
  stack.use(source);
  stack.use(target);
  settings = join(folders.source, "other.env");
  await writeFile(settings, `DATA_DIR=${folders.target}\nBASE_URL=${target.baseUrl}\n`);
  viewer = await signIn(source.baseUrl);
  receiver = await startReceiver();
}, 400_000);
afterAll(async () => {
  await receiver?.close();
  await stack.disposeAsync();
});

const agent = new Agent({ keepAlive: true });
const ask = (at: string, token: string, query: string, variables: object = {}) =>
  post(
    agent,
    at,
    { query, variables },
    { authorization: `Bearer ${token}`, "idempotency-key": randomUUID() },
  );

const CREATE = "mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }";
const WHERE = `query { organization(id: "${slug}") { id } }`;

/** Members who create leads without end, wherever the organization is. */
function startWriters(count: number) {
  const seen = { acknowledged: new Map<string, string>(), paused: 0, moved: 0, wrong: [] as string[] };
  const state = { over: false };
  const write = async (number: number) => {
    let [at, token] = [source.baseUrl, viewer.token];
    for (let next = 1; !state.over;) {
      const name = `Mover ${number}-${next}`;
      const input = { projectId: viewer.projectId, name, email: `mover.${number}.${next}@load.example` };
      const { data, errors } = await ask(at, token, CREATE, { input });
      if (data?.createLead) {
        seen.acknowledged.set(data.createLead.id, name);
        next += 1;
        continue;
      }
      const { code, retryAfterSeconds } = errors![0]!.extensions as Record<string, unknown>;
      if (code === "UNAVAILABLE" && retryAfterSeconds === 2) seen.paused += 1;
      else {
        // Its projects are not found here any longer: the directory has its new location.
        const [where] = (await ask(at, token, WHERE)).errors ?? [];
        const { code: refusal, url } = (where?.extensions ?? {}) as Record<string, unknown>;
        if (refusal === "ORGANIZATION_MOVED") {
          seen.moved += 1;
          at = url as string;
          token = (await signIn(at)).token;
        } else seen.wrong.push(`${String(code)}: ${errors![0]!.message}`);
      }
    }
  };
  const writers = Array.from({ length: count }, (_, number) => write(number));
  return {
    seen,
    stop: async () => {
      state.over = true;
      await Promise.all(writers);
    },
  };
}

test("an organization whose rows others refer to is not moved", async () => {
  const { code, stderr } = await run("move", slug, "--to", settings, "--yes");
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(
      /Organizations that sell together must be on one installation:\n.* app_public\.project_organizations/,
    ),
  ]);
  await sql(
    folders.source,
    `do $$ begin perform app_private.set_removing();
       delete from app_public.project_organizations where organization_id <> owner_id; end $$`,
  );
  const dry = await run("move", slug, "--to", settings);
  expect([dry.code, dry.stdout]).toEqual([0, expect.stringContaining("Nothing was changed: add --yes")]);
  expect(await sql(folders.target, "select from app_public.organizations")).toEqual([]);
}, 120_000);

test("it moves while members write: nothing is lost or duplicated, and the events have no gap", async () => {
  // One member has an account there already.
  const [known] = await sql<{ id: string; email: string }>(
    folders.source,
    `select i.user_id as id, i.email from app_hidden.user_identities i
       join app_public.organization_user_connections m on m.user_id = i.user_id
     where m.organization_id = $1 and i.email <> 'demo@plat.example' order by i.email limit 1`,
    [viewer.organizationId],
  );
  const [account] = await sql<{ id: string }>(
    folders.target,
    `insert into app_public.users (id, slug, first_name) values (uuidv7(), 'here-before', 'Here') returning id`,
  );
  await sql(folders.target, "insert into app_hidden.user_identities (user_id, email) values ($1, $2)", [
    account!.id,
    known!.email,
  ]);
  const webhook = await ask(
    source.baseUrl,
    viewer.token,
    "mutation ($input: CreateWebhookInput!) { createWebhook(input: $input) { id secret } }",
    {
      input: {
        organizationId: viewer.organizationId,
        url: receiver.url,
        events: ["lead.created"],
      },
    },
  );
  expect(webhook.errors).toBeUndefined();
  // A client that does not know whether its request was executed.
  const created = await ask(
    source.baseUrl,
    viewer.token,
    "mutation ($input: CreateAccessTokenInput!) { createAccessToken(input: $input) { token } }",
    {
      input: { name: "Program", organizationId: viewer.organizationId },
    },
  );
  expect(created.errors).toBeUndefined();
  const key = randomUUID();
  const unanswered = (at: string) =>
    post(
      agent,
      at,
      { query: CREATE, variables: { input: { projectId: viewer.projectId, name: "Once" } } },
      { authorization: `Bearer ${created.data.createAccessToken.token}`, "idempotency-key": key },
    );
  const first = await unanswered(source.baseUrl);
  expect(first.errors).toBeUndefined();

  const { seen, stop } = startWriters(4);
  await until(() => seen.acknowledged.size >= 20);

  // A command that dies during the pause leaves nothing behind.
  const killed = startProgram(
    process.execPath,
    ["src/cli/organizations.ts", "move", slug, "--to", settings, "--yes"],
    {
      env: { ...process.env, ...env(), NODE_OPTIONS: "" },
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  let output = "";
  killed.stderr!.setEncoding("utf8").on("data", (text: string) => (output += text));
  await until(() => output.includes("Comparing") || killed.exitCode !== null, Boolean, { withinMs: 120_000 });
  await killChild(killed);
  const before = seen.acknowledged.size;
  await until(() => seen.acknowledged.size >= before + 20, Boolean, { withinMs: 60_000 });
  expect(seen.moved).toBe(0);
  expect(await sql(folders.target, "select from app_public.organizations")).toEqual([]);

  const moved = await run("move", slug, "--to", settings, "--yes");
  if (moved.code !== 0) throw new Error(moved.stderr);
  expect(moved.stderr).not.toContain("lacks");
  expect(moved.stdout).toContain(`${slug} is at ${target.baseUrl}`);
  await until(() => seen.moved === 4, Boolean, { withinMs: 60_000 });
  const after = seen.acknowledged.size;
  await until(() => seen.acknowledged.size >= after + 10, Boolean, { withinMs: 60_000 });
  await stop();
  process.stderr.write(`${moved.stdout}${seen.acknowledged.size} leads, ${seen.paused} refusals\n`);
  expect(seen.wrong).toEqual([]);
  expect(seen.paused).toBeGreaterThan(0);

  const leads = await sql<{ id: string; name: string }>(
    folders.target,
    "select id, name from app_public.leads where name like 'Mover %'",
  );
  expect(new Map(leads.map(({ id, name }) => [id, name]))).toEqual(seen.acknowledged);
  expect(
    await sql(
      folders.target,
      `select count(*) = max(e.sequence) and min(e.sequence) = 1 and max(e.sequence) = (select c.last_sequence
         from app_private.event_counters c where c.stream_id = $1) as whole
       from app_public.events e where e.stream_id = $1`,
      [viewer.organizationId],
    ),
  ).toEqual([{ whole: true }]);
  expect((await unanswered(target.baseUrl)).data).toEqual(first.data);
  // Creations are reported once.
  expect(
    await sql(
      folders.target,
      `select from app_public.events e where e.name = 'lead.created' group by e.subject_id having count(*) > 1`,
    ),
  ).toEqual([]);
  // The receiver runs in this process, which the search must not block.
  const unsent = () => {
    const sent = new Set(receiver.messages.map(({ event }) => event.subjectId));
    return [...seen.acknowledged.keys()].filter((id) => !sent.has(id));
  };
  await until(unsent, ({ length }) => length === 0, { withinMs: 60_000 });
  const bySubject = Map.groupBy(receiver.messages, ({ event }) => event.subjectId);
  const twice = [...bySubject.values()].filter(({ length }) => length > 1);
  expect(twice.map((messages) => messages.map(({ id, text }) => [id, text]))).toEqual([]);
  // Members keep their accounts there.
  expect(
    await sql(
      folders.target,
      "select m.user_id as id from app_public.organization_user_connections m where m.user_id = any ($1)",
      [[known!.id, account!.id]],
    ),
  ).toEqual([account]);
  // Secrets are sealed with the keys of the other installation, and contents of files are in its store.
  const { id: webhookId, secret } = webhook.data.createWebhook;
  const config = loadConfig({ DATA_DIR: folders.target }, ["--migrate-only"]);
  const [{ sealed }] = (await sql<{ sealed: string }>(
    folders.target,
    "select sealed from app_private.webhook_secrets where webhook_id = $1",
    [webhookId],
  )) as [{ sealed: string }];
  const seal = await withDatabase(config, (url) => loadSeal(config, apiUrlOf(config, url), undefined));
  expect(seal.open(sealed, { column: "app_private.webhook_secrets.sealed", row: webhookId })).toBe(secret);
  const store = createFileStore({ dataDir: folders.target });
  const contents = await sql<{ checksum: string; size: number }>(
    folders.target,
    // The hash of zeros is a row of the migrations, without a file.
    "select checksum, filesize as size from app_private.stored_files where is_stored and checksum <> repeat('0', 64)",
  );
  expect(contents.length).toBeGreaterThan(0);
  for (const { checksum, size } of contents) expect(await store.size(checksum)).toBe(size);
  await store.close();
}, 400_000);

test("its rows remain until they are removed, and the directory after that", async () => {
  const rows = () =>
    sql<{ count: number }>(
      folders.source,
      "select count(*)::int as count from app_public.leads where organization_id = $1",
      [viewer.organizationId],
    );
  expect((await run("move", slug, "--to", settings)).stderr).toContain("has already moved to");
  expect((await run("move", slug, "--remove")).stdout).toContain("Nothing was changed: add --yes");
  expect((await rows())[0]!.count).toBeGreaterThan(20);
  const { code, stderr, stdout } = await run("move", slug, "--remove", "--yes");
  expect([code, stderr, stdout]).toEqual([0, "", expect.stringContaining("were removed")]);
  expect(await rows()).toEqual([{ count: 0 }]);
  expect((await ask(source.baseUrl, viewer.token, WHERE)).errors).toEqual([
    expect.objectContaining({
      extensions: expect.objectContaining({ code: "ORGANIZATION_MOVED", url: target.baseUrl }),
    }),
  ]);
  // Other organizations continue.
  expect((await run()).stdout).toMatch(/^quayside-sales /m);
}, 120_000);
