import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { randomUUID } from "node:crypto";
import { startWorld, type World } from "../harness/world.ts";
import { expectMasked } from "./leaks.ts";
import { until } from "../harness/until.ts";

let world: World;

beforeAll(async () => {
  world = await startWorld();
});
afterAll(async () => world.stop());

const createLead = `mutation ($project: ID!, $name: String!) { createLead(input: { projectId: $project, name: $name }) { id name } }`;
const lead = (name: string) => ({ project: world.project.id, name });

/** The number of rows in the database for a lead: rows, events, stored idempotency keys, unnumbered batches. */
async function traces(name: string): Promise<unknown> {
  const { rows } = await world.owner.query(
    `select (select count(*)::int from app_public.leads where name = $1) as leads,
       (select count(*)::int from app_public.events where data ->> 'name' = $1) as events,
       (select count(*)::int from app_private.idempotency_keys) as keys,
       (select count(*)::int from app_private.event_batches) as batches`,
    [name],
  );
  return rows[0];
}
const nothing = { leads: 0, events: 0, keys: 0, batches: 0 };

/** Installs a trigger on new leads during the work. */
async function withTrigger(
  when: "before insert" | "at commit",
  body: string,
  work: () => Promise<void>,
): Promise<void> {
  const [kind, timing, options] =
    when === "at commit"
      ? ["constraint trigger", "after insert", "deferrable initially deferred"]
      : ["trigger", "before insert", ""];
  await world.owner.query(
    `create function public.tg_fault() returns trigger language plpgsql volatile security definer as $$ begin ${body} return new; end $$;
     create ${kind} "_000_fault" ${timing} on app_public.leads ${options} for each row execute function public.tg_fault()`,
  );
  try {
    await work();
  } finally {
    await world.owner.query("drop function public.tg_fault cascade");
  }
}

test("a mutation that fails at the commit returns an error and changes nothing", async () => {
  const doomed = "if new.name like 'Doomed%' then raise exception 'secret of relation leads'; end if;";
  await withTrigger("at commit", doomed, async () => {
    const answer = await world.ada.ask(createLead, lead("Doomed"), {
      headers: { "Idempotency-Key": randomUUID() },
    });
    expect(answer.status).toBe(200);
    expect(answer.data).toEqual({ createLead: null });
    expectMasked(answer);
    expect(await traces("Doomed")).toEqual(nothing);
  });
  expect((await world.ada.get(createLead, lead("Doomed"))).createLead.name).toBe("Doomed");
});

test("a refusal at the commit is returned to the client with its code", async () => {
  const refused = `perform app_hidden.fail('CONFLICT', 'Not today.', '{"field": "name"}');`;
  await withTrigger("at commit", refused, async () => {
    expect(await world.ada.refused(createLead, lead("Refused"))).toMatchObject({
      code: "CONFLICT",
      message: "Not today.",
      field: "name",
    });
    expect(await traces("Refused")).toEqual(nothing);
  });
});

test("a field that fails at the commit does not affect other fields of its request", async () => {
  const doomed = "if new.name = 'Doomed Two' then raise exception 'no'; end if;";
  await withTrigger("at commit", doomed, async () => {
    const answer = await world.ada.ask(
      `mutation ($project: ID!) {
        before: createLead(input: { projectId: $project, name: "Before" }) { name }
        failing: createLead(input: { projectId: $project, name: "Doomed Two" }) { name }
        after: createLead(input: { projectId: $project, name: "After" }) { name }
      }`,
      { project: world.project.id },
    );
    expect(answer.data).toEqual({ before: { name: "Before" }, failing: null, after: { name: "After" } });
    expect(answer.errors?.map(({ path }) => path)).toEqual([["failing"]]);
    expect(await traces("Doomed Two")).toEqual(nothing);
  });
});

test("two requests that deadlock both succeed: the aborted one is retried", async () => {
  // Each takes its own lock, waits until the other has too (or has ended), and then requests the other's.
  const cross = `
    if new.name not in ('Cross 1', 'Cross 2') then return new; end if;
    declare
      mine int := right(new.name, 1)::int;
      theirs int := 3 - mine;
    begin
      perform pg_advisory_xact_lock(77, mine);
      loop
        exit when exists (select from pg_locks l where l.locktype = 'advisory' and l.classid = 77 and l.objid = theirs and l.granted)
          or exists (select from app_public.leads o where o.name = 'Cross ' || theirs);
        perform pg_sleep(0.002);
      end loop;
      perform pg_advisory_xact_lock(77, theirs);
    end;`;
  await withTrigger("before insert", cross, async () => {
    const deadlocks = async () =>
      Number(
        (await world.owner.query("select deadlocks from pg_stat_database where datname = current_database()"))
          .rows[0].deadlocks,
      );
    const { result, count } = await world.statements(() =>
      Promise.all(["Cross 1", "Cross 2"].map((name) => world.ada.ask(createLead, lead(name)))),
    );
    for (const answer of result) expect(answer.errors).toBeUndefined();
    expect(count).toBe(3);
    expect(await deadlocks()).toBeLessThanOrEqual(1); // the statistics are updated late, never early
    for (const name of ["Cross 1", "Cross 2"])
      expect(await traces(name)).toEqual({ ...nothing, leads: 1, events: 1 });
  });
});

test("a statement that is cancelled for taking too long is a coded error, and stores nothing", async () => {
  const endless = "if new.name = 'Endless' then perform pg_sleep(600); end if;";
  await withTrigger("at commit", endless, async () => {
    const request = world.ada.ask(createLead, lead("Endless"), {
      headers: { "Idempotency-Key": randomUUID() },
    });
    // SQLSTATE 57014, like statement_timeout, without waiting for it.
    const stop = async () =>
      (
        await world.owner.query(
          "select pg_cancel_backend(pid) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'",
        )
      ).rows.length > 0;
    await until(stop);
    const answer = await request;
    expect(answer.data).toEqual({ createLead: null });
    expectMasked(answer);
    expect(answer.errors![0]!.message).toMatch(/too long .* nothing was changed/);
    expect(await traces("Endless")).toEqual(nothing);
  });
});

test("statements have a time limit, so that none holds a connection forever", async () => {
  const seen: string[] = [];
  const remember = "insert into public.seen values (current_setting('statement_timeout'));";
  await world.owner.query("create table public.seen (value text)");
  await withTrigger("before insert", remember, async () => {
    await world.ada.get(createLead, lead("Timed"));
  });
  seen.push(...(await world.owner.query("select value from public.seen")).rows.map(({ value }) => value));
  await world.owner.query("drop table public.seen");
  expect(seen).toEqual(["25s"]);
});
