import { leadRows, type LeadRow } from "./leadRows.ts";
import type { Stage } from "./stage.ts";

/** Statuses of a lead before its current one. Some leads get their last status from their deal. */
const waysTo: Record<LeadRow["status"], string[]> = {
  NEW: [],
  CONTACTED: ["CONTACTED"],
  COLD: ["CONTACTED", "COLD"],
  WARM: ["CONTACTED", "WARM"],
  HOT: ["CONTACTED", "HOT"],
  NEGOTIATING: ["CONTACTED", "HOT"],
  RESERVED: ["CONTACTED", "HOT"],
  CONVERTED: ["CONTACTED", "HOT"],
  LOST: ["CONTACTED", "LOST"],
  UNQUALIFIED: ["CONTACTED", "UNQUALIFIED"],
};

/** Leads in every status, with notes and agents; each is created and updated by its assignee. */
export async function leads(stage: Stage): Promise<void> {
  for (const [index, row] of leadRows.entries()) await lead(stage, row, index);
  await date(stage);
}

async function lead(stage: Stage, row: LeadRow, index: number): Promise<void> {
  const actor = row.assignee ?? "amir";
  const registered = stage.daysAgo(row.daysAgo);
  const email = `${row.name
    .toLowerCase()
    .normalize("NFD")
    .replace(/[^a-z ]/g, "")
    .replace(/ +/g, ".")}@mail.example`;
  const { id } = await stage.as(
    actor,
    `select l.id from app_public.create_lead($1, case when $2::jsonb is not null
       then jsonb_populate_record(null::app_public.agent_input, $2) end) l`,
    [
      {
        project_id: stage.id(`project ${row.project}`),
        name: row.name,
        email,
        phone: `+1 ${index % 2 ? "416" : "905"} 555 ${String(1200 + index * 7)}`,
        source: row.source,
        assignee_id: row.assignee && stage.id(row.assignee),
        registered_at: registered,
        tags: row.tags ?? [],
        is_represented: Boolean(row.agent),
        subscribed: index % 3 === 0,
      },
      row.agent ?? null,
    ],
  );
  stage.keep(`lead ${row.name}`, id);
  for (const [position, status] of waysTo[row.status].entries())
    await step(stage, actor, id, status, row, position === 0 ? revealedFacts(row) : {});
  for (const note of row.notes ?? [])
    await stage.create(actor, "lead_notes", {
      lead_id: id,
      text: note,
      pinned: note === row.notes![0] && row.status === "HOT",
    });
}

/** Facts that the first conversation revealed about the lead. */
function revealedFacts({ budget }: LeadRow): Record<string, unknown> {
  return budget ? { budget_min: budget[0], budget_max: budget[1], preapproved: budget[1] > 900_000 } : {};
}

async function step(
  stage: Stage,
  actor: string,
  id: string,
  status: string,
  row: LeadRow,
  further: Record<string, unknown>,
): Promise<void> {
  const reason =
    status === "LOST"
      ? await stage.as(
          actor,
          "select r.id from app_public.fallout_reasons r where r.project_id = $1 and r.name = $2",
          [stage.id(`project ${row.project}`), row.reason],
        )
      : undefined;
  await stage.as(actor, "select l.id from app_public.update_lead($1) l", [
    { id, status, ...further, ...(reason ? { fallout_reason_id: reason.id } : {}) },
  ]);
}

/** Moves timestamps into the past: leads are answered within two days, and progress over a third of the days since. */
async function date(stage: Stage): Promise<void> {
  const worked = leadRows
    .filter(({ status }) => status !== "NEW")
    .map(({ name, daysAgo }) => ({
      id: stage.id(`lead ${name}`),
      answered: stage.daysAgo(daysAgo - (2 + (Math.round(daysAgo) % 5) * 9) / 24),
      changed: stage.daysAgo(daysAgo * 0.65),
    }));
  await stage.asOwner(
    `update app_public.leads l set first_response_at = w.answered, last_interaction_at = w.changed, status_changed_at = w.changed,
       lost_at = case when l.status = 'LOST' then w.changed end
     from jsonb_to_recordset($1) w (id uuid, answered timestamptz, changed timestamptz) where l.id = w.id`,
    [JSON.stringify(worked)],
  );
}
