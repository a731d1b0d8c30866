/** This version starts on data folders of earlier versions, which are kept in test/releases. */
import { expect, test } from "@jest/globals";
import { Client } from "pg";
import { readCatalog } from "../../src/database/catalog.ts";
import { differences } from "../../src/database/differences.ts";
import { startEmbeddedPostgres } from "../../src/database/embeddedServer.ts";
import { migrate } from "../../src/database/migrate.ts";
import { readReference } from "../../src/database/reference.ts";
import type { Reference } from "../../src/database/referenceCatalog.ts";
import { startService } from "../harness/service.ts";
import { keptReleases, unpackRelease } from "../releases/unpackRelease.ts";
import { until } from "../harness/until.ts";

test("there is a data folder of the version before the baseline", () => {
  expect(keptReleases()).toContain("baseline");
});

/** Shared by all releases, because it is created from the files alone. */
let reference: Reference | undefined;

for (const release of keptReleases())
  test(`a data folder of ${release} can be started: every row is kept, the schema is that of a new database, the service starts`, async () => {
    await using folder = await unpackRelease(release);
    const postgres = await startEmbeddedPostgres({ dataDir: folder.path, fast: true });
    const owner = new Client({ connectionString: postgres.connectionString });
    try {
      await owner.connect();
      const before = await contents(owner);
      const { rows: files } = await owner.query("select pg_relation_filenode('app_public.events') as file");
      expect(before.get("app_public.leads")?.rows).toBeGreaterThan(0);
      // Current uses of limits still count; expired ones, as all in these folders are, are deleted.
      await owner.query(
        `insert into app_private.rate_limits (bucket, key_hash, hits, expires_at)
           values ('contact.sender', sha256('a'), array[now() - interval '2 hours', now() - interval '10 minutes', now()], now() + interval '1 hour');
         insert into app_private.tries (key, moments)
           values ('login x y', array[now() - interval '20 minutes', now()]), ('login x', array[now() - interval '20 minutes'])`,
      );

      await migrate(postgres.connectionString, {
        reference: async (options) =>
          (reference ??= await readReference(owner, postgres.connectionString, options)),
      });
      if (!reference) throw new Error("The data folder was not behind the files.");
      const now = await readCatalog(owner, { rowsOf: reference.declaredTables });
      expect(differences(now, reference.catalog)).toEqual([]);
      await partition(owner, files[0].file);

      const { rows: uses } = await owner.query(
        `select split_part(key, ' ', 1) as limit, count(*)::int as n, max(expires_at) > now() + interval '23 hours' as long
         from app_private.limit_uses group by key order by 1, 2, 3`,
      );
      expect(uses).toEqual([
        { limit: "contact.sender", n: 2, long: false },
        { limit: "login", n: 1, long: false },
        { limit: "login", n: 1, long: true },
      ]);
      const { declaredTables } = reference;
      // Rows that the files of objects declare follow the files, and migrations add error codes and values of
      // enumerations.
      const others = [
        ...declaredTables,
        "app_private.error_codes",
        "app_private.rate_limits",
        "app_private.tries",
      ];
      const kept = [...before].filter(([table]) => !others.includes(table) && !table.endsWith("_values"));
      for (const [table, { rows, columns, sum }] of kept) {
        const after = await contentsOf(owner, table, columns);
        expect({ table, rows: after?.rows ?? 0, sum: after?.sum ?? null }).toEqual({ table, rows, sum });
      }

      // Records without a number got one, in the order of their creation, and the next record gets the next
      // number.
      for (const [name, letter] of [
        ["offer", "O"],
        ["agreement", "A"],
      ] as const) {
        const { rows: projects } = await owner.query(
          `select array_agg(r.number order by r.inserted_at, r.id) as numbers, max(c.last_number) as last
           from app_public.${name}s r left join app_private.${name}_counters c using (project_id) group by r.project_id`,
        );
        expect(projects.length).toBeGreaterThan(0);
        for (const { numbers, last } of projects) {
          expect(last).toBe(numbers.length);
          expect(numbers).toEqual(
            numbers.map((_: string, i: number) => `${letter}-${String(i + 1).padStart(6, "0")}`),
          );
        }
      }
    } finally {
      await owner.end();
      await postgres.stop();
    }

    await using service = await startService({ env: { DATA_DIR: folder.path } });
    expect(await service.get("/readyz")).toMatchObject({ status: 200, body: { checks: { migrated: true } } });
  });

/** The former table of events is the first partition, with an upper bound and further partitions after it. */
async function partition(owner: Client, file: number): Promise<void> {
  const first = "app_partitions.events_first";
  const partitions = async () =>
    (
      await owner.query(
        "select relation::text, starts_at is null as first, ends_at is null as last from app_private.event_partitions()",
      )
    ).rows;
  expect(await partitions()).toEqual([{ relation: first, first: true, last: true }]);
  const steps: string[] = [];
  await until(async () => {
    const { rows } = await owner.query("select app_private.make_event_partitions() as step");
    if (rows[0].step !== null) steps.push(rows[0].step.replace(/ ends at .*/, " is to end"));
    return rows[0].step === null;
  });
  expect(steps.slice(0, 3)).toEqual([`${first} is to end`, `${first} was read`, `${first} ended`]);
  const [former, ...others] = await partitions();
  expect(former).toEqual({ relation: first, first: true, last: false });
  expect(others.at(-1)).toMatchObject({ first: false, last: true });
  const { rows: left } = await owner.query(
    `select pg_relation_filenode(c.oid) as file, c.relrowsecurity as secured, c.relacl::text as granted,
       (select count(*)::int from pg_policy p where p.polrelid = c.oid) as policies,
       (select count(*)::int from pg_constraint k where k.conrelid = c.oid and k.contype = 'c') as checks
     from pg_class c where c.oid = $1::regclass`,
    [first],
  );
  expect(left).toEqual([
    { file, secured: true, granted: "{plat_owner=arwdDxtm/plat_owner}", policies: 0, checks: 0 },
  ]);
}

interface Content {
  rows: number;
  columns: string[];
  /** The sum over all values in all rows; null without any. */
  sum: string | null;
}

/** The contents of the tables of the service and of the job runner, except for times of the last change. */
async function contents(client: Client): Promise<Map<string, Content>> {
  const { rows } = await client.query<{ table: string; columns: string[] }>(`
    select format('%I.%I', n.nspname, c.relname) as table, array_agg(a.attname::text order by a.attname) as columns
    from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
    where c.relkind = 'r' and n.nspname in ('app_public', 'app_hidden', 'app_private', 'graphile_worker')
      and c.relname not in ('schema_objects', 'migrations') and a.attnum > 0 and not a.attisdropped
      -- What fills a new column touches the row.
      and a.attname not in ('version', 'updated_at')
    group by 1`);
  const found = new Map<string, Content>();
  for (const { table, columns } of rows) found.set(table, (await contentsOf(client, table, columns))!);
  return found;
}

/** Undefined if the table does not exist; later columns are ignored. */
async function contentsOf(client: Client, table: string, columns: string[]): Promise<Content | undefined> {
  const { rows: there } = await client.query<{ columns: string[] | null }>(
    "select array_agg(attname::text order by attname) as columns from pg_attribute where attrelid = to_regclass($1) and attname = any ($2)",
    [table, columns],
  );
  const common = there[0]!.columns;
  if (!common) return undefined;
  // Later kinds of mails are additional fields of a member's settings.
  const values = common.map((column) =>
    `${table}.${column}` === "app_public.organization_user_connections.notifications"
      ? `(to_jsonb("${column}") - 'agreement')`
      : `"${column}"`,
  );
  const row = `row(${values.join(", ")})::text`;
  // The placeholder for contents that have not been sent yet is nobody's row.
  const apart = table === "app_private.stored_files" ? "where checksum <> repeat('0', 64)" : "";
  const { rows } = await client.query<{ rows: number; sum: string | null }>(
    `select count(*)::int as rows, md5(string_agg(${row}, ' ' order by ${row} collate "C")) as sum from ${table} ${apart}`,
  );
  return { ...rows[0]!, columns: common };
}
