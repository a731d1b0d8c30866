import { readTexts } from "../compute/definitionTexts.ts";
import type { Stage } from "./stage.ts";

const minute = 60;
const day = 86_400;

/** Each has running executions from the first start on. A lead that is created later starts the first one. */
const definitions = [
  {
    name: "Welcome new leads",
    description:
      "Thanks new leads, creates a task to call them, and adds a note if there is no progress. It waits for minutes only, so that it can be watched.",
    subject_type: "LEAD",
    trigger: { type: "EVENT", event: "lead.created", filter: { isAgent: false } },
    conditions: {
      and: [{ "!=": [{ var: "lead.origin" }, "IMPORT"] }, { "!": [{ var: "lead.doNotContact" }] }],
    },
    reentry: "NEVER",
    steps: [
      { type: "ADD_TAG", name: "Mark", config: { tag: "welcome" } },
      {
        type: "CREATE_TASK",
        name: "Have them called",
        config: {
          title: "Call {{ lead.name }} about {{ project.title }}",
          description: "{% if lead.phone %}{{ lead.phone }}{% else %}No phone number yet.{% endif %}",
          type: "CALL",
          priority: "HIGH",
          dueInSeconds: day,
        },
      },
      {
        type: "SEND_EMAIL",
        name: "Thank them",
        config: {
          subject: "{{ project.title }}: good to hear from you",
          body: "Hello {{ lead.firstName | default: lead.name }},\n\nthank you for asking about {{ project.title }}. {% if assignee.fullName %}{{ assignee.fullName }}{% else %}One of us{% endif %} calls you within a day.\n\n{{ organization.name }}",
        },
        on_error: "SKIP",
      },
      { type: "WAIT", name: "Give them time", wait_seconds: 3 * minute },
      {
        type: "BRANCH",
        name: "Did anything come of it?",
        config: { condition: { in: [{ var: "lead.status" }, ["NEW", "CONTACTED"]] }, then: 6, else: 7 },
      },
      {
        type: "CREATE_NOTE",
        name: "Nothing yet",
        config: { text: "Welcomed, and {{ lead.status | downcase }} since: call again." },
      },
      { type: "STOP" },
    ],
  },
  {
    name: "Before a reservation ends",
    description:
      "A day before a reservation ends, its assignee is reminded to sign the purchase or to extend it.",
    subject_type: "RESERVATION",
    trigger: { type: "EVENT", event: "reservation.created" },
    reentry: "AFTER_COMPLETION",
    steps: [
      {
        type: "WAIT",
        name: "Until the day before",
        config: { until: "reservation.expiresAt", offsetSeconds: -day },
      },
      {
        type: "BRANCH",
        name: "Is it still open?",
        config: { condition: { in: [{ var: "reservation.status" }, ["PENDING", "CONFIRMED"]] }, else: 5 },
      },
      {
        type: "CREATE_TASK",
        name: "Have somebody look after it",
        config: {
          title: "Sign or extend: {{ lead.name }}, {{ unit.title | default: unit.number }}",
          description:
            "The reservation at {{ reservation.price | money }} {{ project.currency }} ends {{ reservation.expiresAt | date: '%d %B' }}.",
          type: "FOLLOW_UP",
          priority: "URGENT",
          dueInSeconds: day,
        },
      },
      {
        type: "NOTIFY_TEAM",
        name: "Tell them",
        config: { message: "The reservation of {{ lead.name }} ends within a day." },
      },
      { type: "STOP" },
    ],
  },
];

/** New leads and open reservations with a running execution. */
const started: [definition: number, by: string, subject: string][] = [
  [0, "mei", "lead Daniel Osei"],
  [0, "mei", "lead Peter Novak"],
];

/** Two workflows with running executions. */
export async function workflows(stage: Stage): Promise<void> {
  for (const { steps, ...input } of definitions) {
    const { id } = await stage.as(
      "amir",
      `select w.id from app_public.create_workflow(input => $1, checks => $3,
         steps => array(select jsonb_populate_record(null::app_public.workflow_step_input, s) from jsonb_array_elements($2) s)) w`,
      [
        { organization_id: stage.id("developer"), ...input },
        JSON.stringify(steps),
        JSON.stringify(
          readTexts(steps.map((step, index) => ({ config: step.config, at: `steps[${index}].config` }))),
        ),
      ],
    );
    await stage.as("amir", "select w.id from app_public.enable_workflow($1) w", [
      stage.keep(`workflow ${input.name}`, id),
    ]);
  }
  for (const [definition, by, subject] of started) await start(stage, definition, by, stage.id(subject));
  const { ids } = await stage.as<{ ids: string[] }>(
    "mei",
    "select array_agg(r.id order by r.id) as ids from app_public.reservations r where r.status in ('PENDING', 'CONFIRMED')",
  );
  for (const id of ids) await start(stage, 1, "mei", id);
}

const start = (stage: Stage, definition: number, by: string, subject: string) =>
  stage.as(
    by,
    "select e.id from app_public.create_workflow_execution(workflow_id => $1, subject_id => $2) e",
    [stage.id(`workflow ${definitions[definition]!.name}`), subject],
  );
