/** Adding a job: executes the SQL and runs the task of docs/adding-a-job.md, and checks the claims of the guide. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import pino from "pino";
import { startWorker, type Worker } from "../../src/worker.ts";
import { taskContext, type TaskContext } from "../../src/jobs/context.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { guideBlocks } from "../harness/guide.ts";
import { until } from "../harness/until.ts";
import { join as addMember, startWorld, type World } from "../harness/world.ts";
import { createOutbox, type Outbox } from "../tasks/worker.ts";

const src = resolve(import.meta.dirname, "../../src");
let database: TestDatabase;
let world: World;
let outbox: Outbox;
let folder: string;
let worker: Worker;
let task: string;

beforeAll(async () => {
  database = await createTestDatabase();
  world = await startWorld(database);
  outbox = await createOutbox();
  folder = await mkdtemp(join(tmpdir(), "plat-guide-"));
  await mkdir(join(folder, "tasks"));
  const blocks = await guideBlocks("docs/adding-a-job.md");
  const [taskText, template] = blocks.filter(({ language }) => language === "ts").map(({ text }) => text);
  const [sql] = blocks.filter(({ language }) => language === "sql").map(({ text }) => text);
  task = /tg__add_job\('(\w+)'\)/.exec(sql!)![1]!;
  // The files of the guide, outside of the repository: their imports lead back to it.
  await writeFile(
    join(folder, "templates.ts"),
    `import { render, type Rendered } from "${src}/providers/mail/letter.ts";\n${template}`,
  );
  await writeFile(
    join(folder, "tasks", `${task}.ts`),
    taskText!
      .replace("../providers/mail/mailTemplates.ts", "../templates.ts")
      .replaceAll('"../jobs/', `"${src}/jobs/`),
  );
  await world.owner.query(sql!);
  worker = await startWorker({
    connectionString: database.workerUrl,
    taskDirectory: join(folder, "tasks"),
    concurrency: 2,
    log: pino({ level: "silent" }),
    presets: [taskContext({ mail: outbox.provider } as unknown as TaskContext)],
  });
});

afterAll(async () => {
  await worker?.stop();
  await world?.stop();
  await database?.drop();
  await outbox?.remove();
  await rm(folder, { recursive: true, force: true });
});

const jobs = async () =>
  (
    await world.owner.query(
      `select j.attempts, j.last_error from graphile_worker._private_jobs j
       join graphile_worker._private_tasks t on t.id = j.task_id where t.identifier = $1`,
      [task],
    )
  ).rows;
const done = () => until(jobs, ({ length }) => length === 0);

test("the job of a change runs after its commit, once even if it is enqueued again", async () => {
  const person = await world.signUp("Nora");
  await addMember(world, world.summit.id, person, "MEMBER");
  await done();
  const mails = await outbox.take();
  expect(mails.map(({ subject, to }) => [subject, to?.map(({ address }) => address)])).toEqual([
    ["Welcome to Summit Sales", [person.email]],
  ]);
  await world.owner.query(
    `select app_private.add_job($1, jsonb_build_object('id', m.id), queue_name => 'welcome')
     from app_public.organization_user_connections m where m.user_id = $2`,
    [task, person.id],
  );
  await done();
  expect(await outbox.take()).toEqual([]);
});

test("the job of a change that is rolled back does not run, and one for a member who has left does nothing", async () => {
  let left: string;
  const person = await world.signUp("Otto");
  const client = await world.owner.connect();
  try {
    await client.query("begin");
    const { rows } = await client.query<{ id: string }>(
      `insert into app_public.organization_user_connections (organization_id, user_id, role)
       values ($1, $2, 'MEMBER') returning id`,
      [world.summit.id, person.id],
    );
    left = rows[0]!.id;
  } finally {
    await client.query("rollback");
    client.release();
  }
  await world.owner.query("select app_private.add_job($1, jsonb_build_object('id', $2::uuid))", [
    task,
    left!,
  ]);
  await done();
  expect(await outbox.take()).toEqual([]);
});

test("a payload without an id fails, and is retried", async () => {
  await world.owner.query("select app_private.add_job($1, '{}')", [task]);
  const [job] = await until(jobs, ([found]) => found?.last_error);
  expect(job).toMatchObject({ attempts: 1, last_error: "The job's payload has no id." });
});
