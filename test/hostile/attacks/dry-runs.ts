import type { Attack } from "../attack.ts";

const FIELDS = 29;

/** Dry runs of changes that are serialized at commit, each with related records in the response. */
export default {
  title: "dry runs of thirty changes each",
  async play(world, signal) {
    const { attacker, project, organization } = world;
    const changes = Array.from(
      { length: FIELDS },
      (_, n) =>
        `f${n}: createLead(input: { projectId: "${project.id}", name: "Dry ${n}", dryRun: true }) { id events { sequence data } }`,
    );
    const { status, errors } = await world.ask(
      attacker,
      `mutation { ${changes.join("\n")} g: updateOrganization(input: { id: "${organization.id}", dryRun: true }) { id } }`,
      {},
      { signal },
    );
    const codes = new Set(errors?.map(({ extensions }) => extensions["code"]));
    if (status !== 200 && status !== 429 && status !== 503) throw new Error(`Answered with ${status}.`);
    if (codes.has("BAD_USER_INPUT") || codes.has("NOT_FOUND"))
      throw new Error(`The dry run was refused: ${JSON.stringify(errors?.[0])}`);
  },
} satisfies Attack;
