import { randomBytes } from "node:crypto";
import type { Attack, Caller, HostileWorld } from "../attack.ts";

const mutation = `mutation ($input: UploadProjectDocumentInput!) { uploadProjectDocument(input: $input) { id } }`;
const content = Buffer.concat([Buffer.from("%PDF-1.7\n"), Buffer.alloc(40_000_000, 32)]);

/**
 * An upload that is refused: by a user of another organization, by a member, and by the owner with an invalid
 * content.
 */
function request({ project }: HostileWorld, caller: Caller, bytes: Buffer) {
  const boundary = randomBytes(12).toString("hex");
  const part = (name: string, value: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const operations = { query: mutation, variables: { input: { projectId: project.id, file: null } } };
  const head =
    part("operations", JSON.stringify(operations)) +
    part("map", '{"0":["variables.input.file"]}') +
    `--${boundary}\r\nContent-Disposition: form-data; name="0"; filename="a.pdf"\r\n\r\n`;
  return {
    method: "POST",
    headers: {
      "content-type": `multipart/form-data; boundary=${boundary}`,
      "graphql-preflight": "1",
      authorization: `Bearer ${caller.token}`,
    },
    body: Buffer.concat([Buffer.from(head), bytes, Buffer.from(`\r\n--${boundary}--\r\n`)]),
  };
}

let turn = 0;

export default {
  title: "uploads of 40 MB that are refused",
  async play(world) {
    const attempts: [Caller, Buffer][] = [
      [world.stranger, content],
      [world.member, content],
      [world.attacker, Buffer.concat([Buffer.from("\x7fELF"), content])],
    ];
    const answer = await world
      .request("/graphql", request(world, ...attempts[turn++ % attempts.length]!))
      .catch(() => undefined);
    if (answer && !/FORBIDDEN|NOT_FOUND|UNSUPPORTED_FILE|RATE_LIMITED/.test(answer.text))
      throw new Error(`${answer.status}: ${answer.text}`);
  },
} satisfies Attack;
