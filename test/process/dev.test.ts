/** Developing the schema: `npm run dev`, saving files, committing a migration. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { spawnSync } from "node:child_process";
import { cp, readFile, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { join, resolve } from "node:path";
import { runSql } from "../harness/migrationFolder.ts";
import { migratedFolder, startService, temporaryFolder, type Service } from "../harness/service.ts";
import { until } from "../harness/until.ts";

const repository = resolve(import.meta.dirname, "../..");
const probe = (answer: string) => `
create function app_public.loop_probe() returns text language sql stable as $$ select ${answer} $$;
comment on function app_public.loop_probe() is 'A probe.';
grant execute on function app_public.loop_probe() to plat_user, plat_anonymous;
`;

let clone: Awaited<ReturnType<typeof temporaryFolder>>;
let dataDir: Awaited<ReturnType<typeof migratedFolder>>;
let service: Service;
/** Position up to which the output of the terminal was read. */
let read = 0;

beforeAll(async () => {
  clone = await temporaryFolder();
  dataDir = await migratedFolder();
  for (const name of ["src", "migrations", "docs", "package.json", ".gmrc"])
    await cp(join(repository, name), join(clone.path, name), { recursive: true });
  await symlink(join(repository, "node_modules"), join(clone.path, "node_modules"));
  service = await startService({
    clone: clone.path,
    entry: "src/cli/dev.ts",
    env: { DATA_DIR: dataDir.path, GRAPHILE_ENV: "production" },
  });
});
afterAll(async () => {
  await service?.stop();
  await clone[Symbol.asyncDispose]();
  await dataDir[Symbol.asyncDispose]();
});

/** Written atomically: a file that is read while it is being written would lack parts that were not removed. */
async function save(path: string, text: string): Promise<void> {
  const file = join(clone.path, "migrations", path);
  await writeFile(`${file}.new`, text);
  await rename(`${file}.new`, file);
}
/** Waits for new output in the terminal. */
async function printed(pattern: RegExp): Promise<RegExpExecArray> {
  const { match, end } = await service.printed(pattern, read);
  read = end;
  return match;
}

/** Executes SQL in the service's database. */
async function sql(text: string) {
  const pid = await readFile(join(dataDir.path, "postgres/data/postmaster.pid"), "utf8");
  const password = await readFile(join(dataDir.path, "postgres.password"), "utf8");
  return await runSql(`postgres://plat:${password}@127.0.0.1:${pid.split("\n")[3]}/plat`, text);
}

function ask(query: string): Promise<{ data?: Record<string, unknown>; errors?: { message: string }[] }> {
  return new Promise((done, fail) => {
    const headers = { "content-type": "application/json" };
    request(
      `${service.baseUrl}/graphql`,
      { method: "POST", rejectUnauthorized: false, agent: false, headers },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => (text += part));
        response.on("end", () => done(JSON.parse(text)));
      },
    )
      .once("error", fail)
      .end(JSON.stringify({ query }));
  });
}

test("serves a function on save, applies later changes, and drops no request", async () => {
  await save("objects/03-projects/probe.sql", probe("'first'"));
  await printed(/Applied objects\/03-projects\/probe\.sql in .* served [\d,]+ ms after it was saved/);
  expect(await ask("{ loopProbe }")).toMatchObject({ data: { loopProbe: "first" } });

  await save("objects/03-projects/probe.sql", probe("'second'"));
  const answers = new Set<unknown>();
  let holds = false;
  const held = printed(/it holds [\d,]+ ms after it was saved/).then(() => (holds = true));
  await until(async () => {
    const { data, errors } = await ask("{ loopProbe }");
    expect(errors).toBeUndefined();
    answers.add(data!.loopProbe);
    return holds;
  });
  await held;
  expect(await ask("{ loopProbe }")).toMatchObject({ data: { loopProbe: "second" } });
  expect([...answers].filter((answer) => answer !== "first" && answer !== "second")).toEqual([]);
});

test("reports an error with file, line and column, while the API continues", async () => {
  await save("objects/03-projects/probe.sql", probe("'third' || nothing"));
  await printed(
    /objects\/03-projects\/probe\.sql:2:\d+: column "nothing" does not exist[^]*The API goes on as it was\./,
  );
  expect(await ask("{ loopProbe }")).toMatchObject({ data: { loopProbe: "second" } });
  await save("objects/03-projects/probe.sql", probe("'third'"));
  await printed(/it holds/);
  expect(await ask("{ loopProbe }")).toMatchObject({ data: { loopProbe: "third" } });
});

const served = async (name: string) =>
  (
    (await ask('{ type: __type(name: "Query") { fields { name description } } }')).data!.type as {
      fields: { name: string; description: string | null }[];
    }
  ).fields.find((field) => field.name === name);

test("a function with other arguments or another result replaces the former one, and a removed one is dropped; so are removed grants and comments, while others on the same object remain", async () => {
  const named = (name: string, answer: string) => probe(answer).replaceAll("loop_probe", name);
  const granted = named("loop_granted", "'granted'");
  const commented = named("loop_commented", "'commented'");
  const file = "objects/03-projects/probe.sql";
  await save(
    file,
    [probe("'third'"), named("loop_times", "'once'"), named("loop_gone", "'here'"), granted, commented].join(
      "",
    ),
  );
  await printed(/Applied objects\/03-projects\/probe\.sql in .* served/);
  expect(await ask("{ loopProbe loopTimes loopGone loopGranted loopCommented }")).toMatchObject({
    data: {
      loopProbe: "third",
      loopTimes: "once",
      loopGone: "here",
      loopGranted: "granted",
      loopCommented: "commented",
    },
  });
  await save(
    file,
    [
      probe("3").replace("returns text", "returns int"),
      named("loop_times", "n").replaceAll("loop_times()", "loop_times(n int)").replace("text", "int"),
      granted.replace(", plat_anonymous", ""),
      commented.replace(/^comment.*\n/m, ""),
    ].join(""),
  );
  await printed(/Applied objects\/03-projects\/probe\.sql in .* served/);
  expect(await ask("{ loopProbe loopTimes(n: 4) loopCommented }")).toMatchObject({
    data: { loopProbe: 3, loopTimes: 4, loopCommented: "commented" },
  });
  expect((await ask("{ loopGone }")).errors?.[0]?.message).toMatch(/Cannot query field "loopGone"/);
  expect((await ask("{ loopGranted }")).errors).toHaveLength(1);
  expect(await served("loopGranted")).toMatchObject({ description: "A probe." });
  expect((await served("loopCommented"))?.description).not.toBe("A probe.");
});

test("effects of a removed statement are undone by a complete rebuild, and the result is served", async () => {
  const limit = (name: string) => `
create function app_private.loop_comment() returns trigger language plpgsql as $$ begin
  comment on function app_public.loop_probe() is 'Written by a trigger.';
  return new;
end $$;
create trigger loop_comment after insert on app_private.limits for each row when (new.name = 'loop second')
  execute function app_private.loop_comment();
insert into app_private.limits values ('${name}', 1, '1 hour', 'A limit of the loop.');
`;
  await save("objects/02-accounts/loop.sql", limit("loop first"));
  await printed(/Applied objects.02-accounts.loop\.sql in .* served/);
  const limits = () => sql("select name from app_private.limits where name like 'loop %'");
  expect(await limits()).toEqual([{ name: "loop first" }]);

  // An object that no migration creates: the schema no longer matches the files alone.
  await sql("create table app_private.by_hand ()");
  await save("objects/02-accounts/loop.sql", limit("loop second"));
  // The row, which is not visible in the API, changes the comment, which is visible once the database is read
  // again.
  await printed(/Schema, row: 1 created, 0 replaced, 1 dropped\./);
  await printed(/Brought the whole schema up to date; it holds/);
  await printed(/Schema, comment: 0 created, 1 replaced, 0 dropped\./);
  await printed(/Brought the whole schema up to date in .* served/);
  expect(await limits()).toEqual([{ name: "loop second" }]);
  expect(await served("loopProbe")).toMatchObject({ description: "A probe." });
  await sql("drop table app_private.by_hand");
  await save("objects/02-accounts/loop.sql", "");
  await printed(/Schema, row: 0 created, 0 replaced, 1 dropped\./);
  expect(await limits()).toEqual([]);
});

test("reports omissions after a save, with a remedy", async () => {
  const file = "objects/03-projects/forgotten.sql";
  const forgotten = `create function app_public.forgotten() returns int language sql stable as $$ select 1 $$;
    comment on function app_public.forgotten() is 'A number.';`;
  await save(file, forgotten);
  const [sentence] = await printed(/function-grant: .*/);
  expect(sentence).toMatch(/app_public\.forgotten.*grant execute/);
  await rm(join(clone.path, "migrations", file));
  await printed(/Applied objects.03-projects.forgotten\.sql/);
});

test("a table is developed in current.sql, edited like a migration that runs once, committed by one command, and kept", async () => {
  const table = (columns: string) => `
create table app_public.loop_things (
  like app_private.project_record including all,
  ${columns},
  constraint loop_things_project_id_fkey foreign key (project_id, organization_id)
    references app_public.projects (id, organization_id) on delete cascade
);
alter table app_public.loop_things enable row level security;
`;
  const objects = "objects/03-projects/loop-things.sql";
  const text = `select app_private.make_project_table('loop_things', 'loop_thing', 'marketing.read', 'marketing.manage');
grant insert (project_id, label), update (label), delete on app_public.loop_things to plat_user;
comment on table app_public.loop_things is 'A thing.';
`;
  // Usually both in one save; the table is applied first, whatever the order of the files.
  await save(objects, text);
  await save("current.sql", table("label text not null"));
  await printed(/Applied (?:current\.sql, )?objects.03-projects.loop-things\.sql in .* served/);
  // Not by introspection, of which the service answers one in four seconds.
  const isServed = async (field: string) => {
    const { errors = [] } = await ask(
      `{ loopThing(id: "00000000-0000-7000-8000-000000000000") { ${field} } }`,
    );
    return errors.every(({ message }) => !message.startsWith("Cannot query field"));
  };
  expect(await isServed("label")).toBe(true);
  expect(await isServed("colour")).toBe(false);

  await save("current.sql", table("label text not null, colour text"));
  await printed(/Applied current\.sql in .* served/);
  expect(await isServed("colour")).toBe(true);

  const wrong = spawnSync(process.execPath, ["src/cli/commitMigration.ts"], {
    cwd: clone.path,
    encoding: "utf8",
  });
  expect(wrong).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^Give the name of the migration/),
  });
  await save("current.sql", "create table app_public.faulty (id nothing);");
  const faulty = spawnSync(process.execPath, ["src/cli/commitMigration.ts", "faulty"], {
    cwd: clone.path,
    encoding: "utf8",
  });
  expect(faulty).toMatchObject({
    status: 1,
    stderr: 'migrations/current.sql:1:36: type "nothing" does not exist\n',
  });
  await printed(/current\.sql:1:36: type "nothing" does not exist[^]*The API goes on as it was/);
  await save("current.sql", table("label text not null, colour text"));

  const committed = spawnSync(process.execPath, ["src/cli/commitMigration.ts", "loop-things"], {
    cwd: clone.path,
    encoding: "utf8",
  });
  expect(committed).toMatchObject({ status: 0, stderr: "" });
  const files = await readdir(join(clone.path, "migrations/committed"));
  const last = files.toSorted().at(-1)!;
  expect(committed.stdout).toContain(`Committed migrations/committed/${last};`);
  expect(last).toMatch(/^\d{6}-loop-things\.sql$/);
  expect((await readFile(join(clone.path, "migrations/current.sql"), "utf8")).trim()).toBe("");
  const check = spawnSync(process.execPath, ["src/cli/checkMigrations.ts"], {
    cwd: clone.path,
    encoding: "utf8",
  });
  expect(check).toMatchObject({ status: 0, stderr: "" });

  // The database had it already, so it is not created again, now or at the next start.
  expect(await isServed("colour")).toBe(true);
  const ended = await service.stop();
  expect(ended.code).toBe(0);
  expect(ended.stderr.slice(read)).not.toMatch(/The API goes on as it was/);
  service = await startService({
    clone: clone.path,
    env: { DATA_DIR: dataDir.path, GRAPHILE_ENV: "production" },
  });
  expect(await service.get("/readyz")).toMatchObject({ status: 200 });
  expect(await isServed("colour")).toBe(true);
});
