import type { Attack } from "../attack.ts";

const exports: string[] = [];
let turn = 0;

/** The maximum number of concurrent exports of a user; PDF tables take the most time to write. */
export default {
  title: "exports of 2,000 leads as PDF and XLSX",
  async prepare(world) {
    const { owner, organization, project, attacker } = world;
    await owner.query(
      `insert into app_public.leads (organization_id, project_id, name, email, company)
       select $1, $2, 'Łucja Nguyễn ' || n, 'lead.' || n || '@example.com', repeat(chr(1024 + n % 200), 40) from generate_series(1, 2000) n`,
      [organization.id, project.id],
    );
    for (const format of ["PDF", "XLSX"]) {
      const { createCustomExport } = await world.get(
        attacker,
        "mutation ($input: CreateCustomExportInput!) { createCustomExport(input: $input) { id } }",
        { input: { organizationId: organization.id, name: format, subject: "LEADS", format } },
      );
      exports.push(createCustomExport.id);
    }
  },
  async play(world, signal) {
    // More than the limit per hour.
    await world.owner.query("delete from app_private.limit_uses where key like 'export %'");
    const { data, errors } = await world.ask(
      world.attacker,
      "mutation ($id: ID!) { runCustomExport(input: { id: $id }) { id status } }",
      { id: exports[turn++ % exports.length] },
    );
    if (errors && errors[0]!.extensions.code !== "RATE_LIMITED") throw new Error(errors[0]!.message);
    for (let run = data?.runCustomExport; /^(PENDING|PROCESSING)$/.test(run?.status) && !signal.aborted;)
      run = (await world.get(world.attacker, "query ($id: ID!) { export(id: $id) { id status } }", run))
        .export;
  },
} satisfies Attack;
