import { writeFile } from "node:fs/promises";
import { type Command, text } from "../command.ts";
import { servedSchema } from "../servedSchema.ts";

export const schema: Command = {
  name: "schema",
  summary: "Write the schema that the service serves, for code generators and editors",
  details: "Needs the package graphql beside this one.",
  options: { out: { type: "string", value: "FILE", description: "Where to; standard output if omitted." } },
  examples: ["plat schema --out schema.graphql"],
  async run(context) {
    const { graphql, schema: served } = await servedSchema(context);
    const sdl = `${graphql.printSchema(served)}\n`;
    const file = text(context, "out");
    if (file) await writeFile(file, sdl);
    else context.out.line(sdl.trimEnd());
  },
};
