import type { ClientBase } from "pg";
import { markdownTable } from "./markdownTable.ts";

interface Member {
  type: string;
  does: string;
  refusal: string | null;
  subjects: string[] | null;
  name: string | null;
  kind: string;
  required: boolean;
  least: number | null;
  most: number | null;
  choices: string[] | null;
  beside: string | null;
  description: string;
}

/** The types of steps with the fields of their config, from the rows that definitions are held against. */
export async function workflowSteps(database: ClientBase): Promise<string> {
  const { rows } = await database.query<Member>(
    `select t.type, v.description as does, t.refusal, t.subjects, m.name, m.kind, m.required, m.least, m.most, m.choices,
       m.with_name || ': ' || m.with_value as beside, m.description
     from app_hidden.workflow_step_types t
     join app_public.workflow_step_type_values v on v.value = t.type
     left join app_hidden.workflow_step_members m on m.type = t.type
     order by t.type, m.position`,
  );
  return [...new Set(rows.map(({ type }) => type))]
    .map((type) => {
      const members = rows.filter((row) => row.type === type);
      const { does, refusal, subjects } = members[0]!;
      const notes = [
        does,
        ...(subjects ? [`Not for the subject UNIT.`] : []),
        ...(refusal ? [`Refused: ${refusal}`] : []),
      ];
      const described = members.filter(({ name }) => name !== null);
      return [
        `### ${type}`,
        notes.join(" "),
        ...(described.length > 0
          ? [
              markdownTable(
                ["Field", "Value", "Meaning"],
                described.map((member) => [
                  `\`${member.name}\`${member.required || member.beside ? ` (required${member.beside ? ` with ${member.beside}` : ""})` : ""}`,
                  valueOf(member),
                  member.description,
                ]),
              ),
            ]
          : []),
      ].join("\n\n");
    })
    .join("\n\n");
}

function valueOf({ kind, least, most, choices }: Member): string {
  const words: Record<string, string> = {
    text: `text, ${most} characters`,
    template: `template, ${most} characters`,
    templates: "object; its texts are templates",
    integer: `${least} to ${most}`,
    boolean: "true or false",
    choice: (choices ?? []).join(", "),
    member: "id of a member",
    members: `ids of ${least} to ${most} members`,
    email: "email address",
    url: "https address",
    event: "name of an event",
    condition: "condition",
    sequence: "sequence of a later step",
    timeout: "CONTINUE, STOP or the sequence of a later step",
    time: "variable that is a time",
    field: "name of a field",
    value: "any; a text may be a template",
  };
  return words[kind]!;
}

/** The operators of conditions as a Markdown table. */
export async function workflowOperators(database: ClientBase): Promise<string> {
  const { rows } = await database.query<{
    operator: string;
    least: number;
    most: number;
    description: string;
  }>(
    `select operator, least, most, description from app_hidden.workflow_operators order by operator collate "C"`,
  );
  return markdownTable(
    ["Operator", "Arguments", "Value"],
    rows.map(({ operator, least, most, description }) => [
      `\`${operator}\``,
      least === most ? String(least) : `${least} to ${most}`,
      description,
    ]),
  );
}

/** The variables of conditions and templates: what each is, and the fields of the records. */
export async function workflowVariables(database: ClientBase): Promise<string> {
  const roots = await database.query<{ root: string; description: string }>(
    "select root, description from app_hidden.workflow_roots order by position",
  );
  // A subject of a kind that has no variable of its own is read as the subject alone.
  const { rows } = await database.query<{ root: string; kind: string | null; fields: string[] }>(
    `select r.root, null as kind, array_agg(v.name order by v.name) as fields
     from app_hidden.workflow_roots r join app_private.workflow_variables() v on v.root = r.root group by r.root
     union all
     select 'subject', s.value, array_agg(c.name order by c.name)
     from app_public.workflow_subject_values s cross join lateral app_private.record_columns(app_private.subject_table(s.value)) c
     where lower(s.value) not in (select r.root from app_hidden.workflow_roots r) group by s.value
     order by root, kind`,
  );
  return [
    markdownTable(
      ["Variable", "What it is"],
      roots.rows.map(({ root, description }) => [`\`${root}\``, description]),
    ),
    rows
      .map(
        ({ root, kind, fields }) =>
          `- \`${root}\`${kind ? ` of the kind ${kind}` : ""}: ${fields.map((field) => `\`${field}\``).join(", ")}`,
      )
      .join("\n"),
  ].join("\n\n");
}
