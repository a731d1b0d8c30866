import { existsSync } from "node:fs";
import { glob, readFile, stat } from "node:fs/promises";
import { type Command, exitCodes, texts, UsageError } from "../command.ts";
import { servedSchema } from "../servedSchema.ts";
import { deprecatedUses, lastUse, loadUsedSchema, withImplied } from "../usedSchema.ts";

/** The schema for which this version of the package was made. */
function ownSchema(): URL {
  const file = new URL("../../schema.graphql", import.meta.url);
  if (existsSync(file)) return file;
  throw new UsageError("Name the schema that your program was written for, such as schema.graphql.");
}

/** The files that match the patterns, without duplicates. */
async function filesOf(patterns: readonly string[]): Promise<string[]> {
  const files = new Set<string>();
  for (const pattern of patterns) {
    if (
      await stat(pattern).then(
        (found) => found.isFile(),
        () => false,
      )
    )
      files.add(pattern);
    else for await (const file of glob(pattern)) files.add(file);
  }
  return [...files].toSorted();
}

export const changes: Command = {
  name: "changes",
  summary: "Compare the served schema with the one that your program was written for",
  usage: "[FILE]",
  details:
    "FILE is a schema, such as `plat schema` wrote; that of this package if omitted. Breaking changes are listed, and changes that may surprise. With --documents, the operations of your program are validated against the served schema: what they do not use does not matter, and what they use of deprecated fields is listed. With --used, only what operations of the organization used in the last 30 days is compared, whoever sent them; this is for its admins. The exit code is 1 for breaking changes, or operations that are no longer valid. Needs the package graphql beside this one.",
  options: {
    documents: {
      type: "string",
      short: "d",
      value: "GLOB",
      multiple: true,
      description: "Files with the operations of your program.",
    },
    used: {
      type: "boolean",
      short: "u",
      description: "Only what the organization used in the last 30 days.",
    },
  },
  examples: [
    "plat changes schema.graphql",
    "plat changes --documents 'src/**/*.graphql'",
    "plat changes --used schema.graphql",
  ],
  async run(context) {
    const { positionals, out } = context;
    const { graphql, schema } = await servedSchema(context);
    const documents = texts(context, "documents");
    let failed = false;
    const say = (kind: string, where: string, message: string) => {
      if (out.json) out.line(JSON.stringify({ kind, where, message }));
      else out.line(`${kind.padEnd(10)}  ${where ? `${where}: ` : ""}${message}`);
    };
    if (documents.length > 0) {
      for (const file of await filesOf(documents)) {
        const document = graphql.parse(await readFile(file, "utf8"));
        for (const { message } of graphql.validate(schema, document)) {
          failed = true;
          say("invalid", file, message);
        }
        const deprecated = [graphql.NoDeprecatedCustomRule];
        for (const { message } of graphql.validate(schema, document, deprecated))
          say("deprecated", file, message);
      }
      return failed ? exitCodes.failed : 0;
    }
    const former = graphql.buildSchema(await readFile(positionals[0] ?? ownSchema(), "utf8"));
    if (context.values["used"]) {
      const recorded = await loadUsedSchema(context);
      const used = withImplied(graphql, former, recorded);
      for (const { description } of graphql.findBreakingChanges(former, schema)) {
        const day = lastUse(used, description);
        if (day === undefined) continue;
        failed = true;
        say("breaking", `used on ${day}`, description);
      }
      for (const { coordinate, day, isNamed, reason } of deprecatedUses(graphql, schema, recorded, used))
        say(
          "deprecated",
          isNamed ? `used on ${day}` : `possibly used on ${day}, in variables`,
          `${coordinate}: ${reason}`,
        );
      return failed ? exitCodes.failed : 0;
    }
    for (const { description } of graphql.findBreakingChanges(former, schema)) {
      failed = true;
      say("breaking", "", description);
    }
    for (const { description } of graphql.findDangerousChanges(former, schema))
      say("dangerous", "", description);
    return failed ? exitCodes.failed : 0;
  },
};
