import type { ClientBase } from "pg";
import { markdownTable } from "./markdownTable.ts";

interface Step {
  subject: string;
  from: string | null;
  to: string;
  by_service: boolean;
  permission: string | null;
  needs: string[];
}

/** The state machines as Markdown: one section and table each, from the rows that the database enforces. */
export async function stateMachines(database: ClientBase): Promise<string> {
  const { rows } = await database.query<Step>(
    `select t.subject, t.from_state as from, t.to_state as to, t.by_service, t.permission,
       array(select app_hidden.camel(r.column_name) from app_hidden.transition_requirements r
         where r.subject = t.subject and r.to_state = t.to_state order by r.column_name) as needs
     from app_hidden.transitions t order by t.subject, t.from_state nulls first, t.by_service, t.to_state`,
  );
  const subjects = [...new Set(rows.map(({ subject }) => subject))];
  return subjects
    .map((subject) =>
      section(
        subject,
        rows.filter((row) => row.subject === subject),
      ),
    )
    .join("\n\n");
}

function section(subject: string, steps: Step[]): string {
  const name = subject.replaceAll("_", " ");
  const states = [...new Set(steps.map(({ from }) => from))];
  const ended = [...new Set(steps.map(({ to }) => to))].filter((to) => !states.includes(to));
  const list = (some: Step[]) => some.map(({ to }) => to).join(", ") || "–";
  const rows = states.map((from) => {
    const here = steps.filter((step) => step.from === from);
    return [from ?? "(new)", list(here.filter((s) => !s.by_service)), list(here.filter((s) => s.by_service))];
  });
  const notes = steps.flatMap(({ to, needs, permission }) => [
    ...(needs.length > 0 ? [`- ${to} needs ${needs.map((need) => `\`${need}\``).join(", ")}.`] : []),
    ...(permission ? [`- ${to} requires the permission \`${permission}\`.`] : []),
  ]);
  return [
    `## ${name[0]!.toUpperCase()}${name.slice(1)}`,
    markdownTable(
      ["From", "Manually to", "By the service to"],
      [...rows, ...ended.map((end) => [end, "–", "–"])],
    ),
    ...(notes.length > 0 ? [[...new Set(notes)].sort().join("\n")] : []),
  ].join("\n\n");
}
