/**
 * Duration of bulk operations on leads over HTTPS, compared with the same changes one by one: upsertLeads with 500
 * new leads, the same leads again, and changed ones; updateLeads with 500; importLeads with a file. The project
 * already has many leads, which are assigned to its members in turn. Limit: 2 s for each call with 500 leads on a
 * quiet machine. BENCH_SIZE sets the number of existing leads, and of rows of the file. Run: npm run bench --
 * bulk-leads
 */
import { performance } from "node:perf_hooks";
import { mutationOf } from "../test/harness/records.ts";
import { multipartBody, sendRaw } from "../test/harness/upload.ts";
import { createProject, join, startWorld } from "../test/harness/world.ts";
import { withDatabase, type BenchDatabase } from "./data/cluster.ts";
import { sized, unlessSmoke } from "./data/size.ts";

const there = sized(100_000, 50);
const list = unlessSmoke(500, 5);
const single = unlessSmoke(100, 2);

/** Prints the duration of the work, and its result. */
async function report<T>(
  name: string,
  amount: number,
  work: () => Promise<T>,
  told?: (answer: T) => unknown,
) {
  const began = performance.now();
  const answer = await work();
  const ms = performance.now() - began;
  console.log(
    `${name.padEnd(44)} ${ms.toFixed(0).padStart(7)} ms ${((ms * 1000) / amount).toFixed(0).padStart(7)} µs/row  ${told ? JSON.stringify(told(answer)) : ""}`,
  );
  return answer;
}

export default (): Promise<void> => withDatabase(bulkLeads);

async function bulkLeads(database: BenchDatabase): Promise<void> {
  const world = await startWorld(database);
  try {
    const mia = await world.signUp("Mia Member");
    await join(world, world.harbour.id, mia, "MEMBER");
    const project = await createProject(world.owen, {
      organizationId: world.harbour.id,
      title: "Many Leads",
      leadAssignment: "ROUND_ROBIN",
      address: { country: "CA" },
    });
    await report(`${there.toLocaleString("en")} leads, by SQL`, there, async () => {
      await world.owner.query(
        `insert into app_public.leads (project_id, name, email, phone)
         select $1, 'Lead ' || i, 'there' || i || '@example.com', '+1416' || (2000000 + i) from generate_series(1, $2::int) i`,
        [project.id, there],
      );
      await world.owner.query("vacuum analyze app_public.leads");
    });
    const createLead = mutationOf("createLead", "{ id }");
    await report("createLead one by one", single, async () => {
      for (let i = 0; i < single; i += 1)
        await world.owen.get(createLead, {
          input: { projectId: project.id, name: `One ${i}`, email: `one${i}@example.com` },
        });
    });

    const entries = (rest: Record<string, unknown>) =>
      Array.from({ length: list }, (_, i) => ({
        externalId: `x${i}`,
        name: `Bo van Larsen ${i}`,
        email: `bulk${i}@example.com`,
        phone: `+1647${3_000_000 + i}`,
        source: "WALK_IN",
        tags: ["fair", "two-bedroom"],
        budgetMin: "400000.00",
        address: { locality: "Toronto" },
        ...rest,
      }));
    const counts =
      "{ createdCount updatedCount unchangedCount refusedCount rows { outcome code lead { id name assignee { id } } } }";
    const upsert = (leads: unknown[]) => async () =>
      (
        await world.owen.get(mutationOf("upsertLeads", counts), {
          input: { projectId: project.id, system: "crm", leads },
        })
      ).upsertLeads;
    const plain = ({ createdCount, updatedCount, unchangedCount, refusedCount }: any) => ({
      createdCount,
      updatedCount,
      unchangedCount,
      refusedCount,
    });
    const { rows } = await report("upsertLeads, new", list, upsert(entries({})), plain);
    await report("upsertLeads, the same again", list, upsert(entries({})), plain);
    await report(
      "upsertLeads, changed",
      list,
      upsert(entries({ company: "Larsen Ltd", status: "WARM" })),
      plain,
    );
    await report(
      "upsertLeads, one in ten refused",
      list,
      upsert(
        entries({}).map((entry, i) => ({
          ...entry,
          externalId: `y${i}`,
          email: `y${i}@example.com`,
          // A rule that only the database checks.
          ...(i % 10 === 0 ? { budgetMax: 1 } : {}),
        })),
      ),
      plain,
    );
    const ids = rows.map((row: any) => row.lead.id as string);
    const update = (input: Record<string, unknown>) => async () =>
      (
        await world.owen.get(
          mutationOf("updateLeads", "{ updatedCount unchangedCount refusedCount rows { outcome } }"),
          {
            input: { ids, ...input },
          },
        )
      ).updateLeads;
    await report("updateLeads, tag and status", list, update({ addTags: ["vip"], status: "HOT" }), plain);
    await report("updateLeads, assign", list, update({ assigneeId: world.owen.id }), plain);

    const file = Buffer.from(
      `Full Name,Email,Mobile,Lead Source,Tags,City\n${Array.from(
        { length: there },
        (_, i) =>
          `Ann Archer ${i},file${i}@example.com,647 ${String(2_000_000 + i)},Walk-in,vip; fair,Toronto\n`,
      ).join("")}`,
    );
    const importer = (input: Record<string, unknown>) => async () => {
      const answer = await sendRaw(
        world,
        world.owen,
        multipartBody(
          mutationOf("importLeads", "{ createdCount updatedCount skippedCount failedCount }"),
          { input: { projectId: project.id, ...input, file: null } },
          { "variables.input.file": { bytes: file, name: "leads.csv" } },
        ),
      );
      if (answer.errors) throw new Error(JSON.stringify(answer.errors));
      return answer.data.importLeads as unknown;
    };
    await report("importLeads", there, importer({}), (answer) => answer);
    await report(
      "importLeads, the same again",
      there,
      importer({ updateExisting: true }),
      (answer) => answer,
    );
  } finally {
    await world.stop();
  }
}
