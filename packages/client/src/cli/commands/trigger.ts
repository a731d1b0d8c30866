import { type Command, type Context, text, UsageError } from "../command.ts";
import { operation } from "../queries.ts";

interface Trigger {
  mutation: string;
  input: string;
  /** The input, from the given project and record. */
  of(given: { projectId: string; id: string | undefined }): Record<string, unknown>;
  /** The required options. */
  needs: "project" | "id";
}

/** A mutation for each event name: it is executed, so the event is real. */
const triggers: Readonly<Record<string, Trigger>> = {
  "lead.created": {
    mutation: "createLead",
    input: "CreateLeadInput",
    needs: "project",
    of: ({ projectId }) => ({ projectId, name: "Trigger Test", tags: ["plat-trigger"] }),
  },
  "lead.updated": {
    mutation: "updateLead",
    input: "UpdateLeadInput",
    needs: "id",
    of: ({ id }) => ({ id, company: `Test ${Date.now()}` }),
  },
  "lead.deleted": { mutation: "deleteLead", input: "DeleteLeadInput", needs: "id", of: ({ id }) => ({ id }) },
  "task.created": {
    mutation: "createTask",
    input: "CreateTaskInput",
    needs: "project",
    of: ({ projectId }) => ({ projectId, title: "Trigger test" }),
  },
  "unit.updated": {
    mutation: "updateUnit",
    input: "UpdateUnitInput",
    needs: "id",
    of: ({ id }) => ({ id, subtitle: `Test ${Date.now()}` }),
  },
};

/** Organizations in which test events do no harm: that of the demo. */
const DEMO = "larkfield-homes";

async function requireDemo(context: Context): Promise<void> {
  const organization = await context.organization();
  const { organization: found } = await (
    await context.connect()
  ).request(
    operation<{ organization: { slug: string } | null }, { id: string }>(
      "query ($id: ID!) { organization(id: $id) { slug } }",
    ),
    { id: organization },
  );
  if (found?.slug === DEMO || context.values["yes"]) return;
  throw new UsageError(
    `${found?.slug ?? organization} is not the demo: what is triggered is a real change there. Say --yes if you mean it.`,
  );
}

export const trigger: Command = {
  name: "trigger",
  summary: "Cause an event by the mutation that it comes from, in the demo",
  usage: "EVENT",
  details: `EVENT is one of ${Object.keys(triggers).join(", ")}. The record that is made or changed is real: in another organization than that of the demo, --yes is needed.`,
  options: {
    project: { type: "string", value: "SLUG", description: "Project of what is created, by id or slug." },
    id: { type: "string", value: "ID", description: "Record that is changed." },
    yes: { type: "boolean", description: "Also outside of the demo." },
  },
  examples: ["plat trigger lead.created --project larkfield-gardens"],
  async run(context) {
    const { positionals, out } = context;
    const found = triggers[positionals[0] ?? ""];
    if (!found) throw new UsageError(`Say which event: ${Object.keys(triggers).join(", ")}.`);
    const projectId = text(context, "project");
    const id = text(context, "id");
    if (found.needs === "project" && !projectId)
      throw new UsageError("Say in which project: --project SLUG.");
    if (found.needs === "id" && !id) throw new UsageError("Say which record: --id ID.");
    await requireDemo(context);
    const { mutation, input } = found;
    const answer = await (
      await context.connect()
    ).request(
      operation<Record<string, { id: string }>, { input: object }>(
        `mutation ($input: ${input}!) { ${mutation}(input: $input) { id } }`,
      ),
      { input: found.of({ projectId: projectId ?? "", id }) },
    );
    if (out.json) out.data(answer);
    else out.line(`${positionals[0]}: ${mutation} of ${answer[mutation]!.id}`);
  },
};
