import { randomBytes } from "node:crypto";
import type { Attack } from "../attack.ts";

const mutation = `mutation ($input: ImportLeadsInput!) { importLeads(input: $input) { createdCount failedCount errors { row message } } }`;

/** Half of the rows have several errors, so nothing is stored and each turn takes as long as the first. */
const file = Buffer.from(
  `name,email,phone,tags,metadata,notes that nobody knows\n${Array.from({ length: 5_000 }, (_, n) =>
    n % 2 === 0
      ? `Storm Lead ${n},lead.${n}@example.org,416 555 0${100 + (n % 900)},"a, b",,${"x".repeat(100)}`
      : `,nonsense,${"1".repeat(40)},,{,${"x".repeat(100)}`,
  ).join("\n")}\n`,
);

export default {
  title: "imports of 5,000 leads, half of them refused",
  async play(world) {
    const boundary = randomBytes(12).toString("hex");
    const part = (name: string, value: string) =>
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    const variables = { input: { projectId: world.project.id, dryRun: true, file: null } };
    const head =
      part("operations", JSON.stringify({ query: mutation, variables })) +
      part("map", '{"0":["variables.input.file"]}') +
      `--${boundary}\r\nContent-Disposition: form-data; name="0"; filename="leads.csv"\r\n\r\n`;
    const answer = await world
      .request("/graphql", {
        method: "POST",
        headers: {
          "content-type": `multipart/form-data; boundary=${boundary}`,
          "graphql-preflight": "1",
          authorization: `Bearer ${world.attacker.token}`,
        },
        body: Buffer.concat([Buffer.from(head), file, Buffer.from(`\r\n--${boundary}--\r\n`)]),
      })
      .catch(() => undefined);
    if (answer && !/"failedCount":2500|RATE_LIMITED|UNAVAILABLE|CONFLICT/.test(answer.text))
      throw new Error(`${answer.status}: ${answer.text.slice(0, 1000)}`);
  },
} satisfies Attack;
