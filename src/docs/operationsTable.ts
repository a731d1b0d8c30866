/** The source of each operation: the file of SQL that defines it. */
import { readFile } from "node:fs/promises";
import { globSync } from "node:fs";
import { join } from "node:path";
import { buildSchema, getNamedType, type GraphQLField } from "postgraphile/graphql";
import { markdownTable } from "./markdownTable.ts";

const repository = join(import.meta.dirname, "../..");
const objects = "migrations/objects";

/** Operations that no object of the database defines, and the files that do. */
const inPlugins: Readonly<Record<string, string>> = {
  node: "src/plugins/RecordNodesPlugin.ts",
  nodes: "src/plugins/RecordNodesPlugin.ts",
};

interface Objects {
  /** Files of functions and tables of app_public, by their names. */
  functions: Map<string, string>;
  tables: Map<string, string>;
  /** Tables by the record names in their comments. */
  named: Map<string, string>;
}

async function readObjects(): Promise<Objects> {
  const found: Objects = { functions: new Map(), tables: new Map(), named: new Map() };
  for (const name of globSync("**/*.sql", { cwd: join(repository, objects) }).toSorted()) {
    const text = await readFile(join(repository, objects, name), "utf8");
    const file = `${objects}/${name}`;
    for (const [, fn] of text.matchAll(/^create function app_public\.(\w+)/gm))
      if (!found.functions.has(fn!)) found.functions.set(fn!, file);
    for (const [, table, comment] of text.matchAll(
      /^comment on (?:table|view) app_public\.(\w+) is([^;]*)/gm,
    )) {
      found.tables.set(table!, file);
      const type = /@(?:operationName|name) (\w+)/.exec(comment!)?.[1];
      if (type) found.named.set(snakeCase(type), table!);
    }
  }
  return found;
}

const snakeCase = (name: string): string =>
  name.replace(/(?<!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase();

/** Possible names of the table of a record type. */
const plurals = (name: string): string[] => [name, `${name}s`, `${name}es`, `${name.replace(/y$/, "ie")}s`];

/** The source of an operation: a function of that name, or the table of its record type. */
function definedIn(
  field: GraphQLField<unknown, unknown>,
  { functions, tables, named }: Objects,
): [what: string, file: string] {
  const name = snakeCase(field.name);
  const fn = functions.get(name);
  if (fn) return [`function \`${name}\``, fn];
  const plugin = inPlugins[field.name];
  if (plugin) return ["plugin", plugin];
  const type = snakeCase(getNamedType(field.type).name).replace(/^delete_(\w+)_payload$/, "$1");
  const record = name.replace(/^(create|update|delete|upload)_/, "").replace(/_connection$/, "");
  for (const candidate of [record, type, type.replace(/_connection$/, "")]) {
    const table = plurals(named.get(candidate) ?? candidate).find((plural) => tables.has(plural));
    if (table) return [`table \`${table}\``, tables.get(table)!];
  }
  throw new Error(
    `Nothing in ${objects} is named after the operation ${field.name}: name where it is made in src/docs/operationsTable.ts.`,
  );
}

/** The queries or mutations of the served schema, each with the object that defines it and its file, as Markdown. */
export async function operationsTable(kind: "Query" | "Mutation"): Promise<string> {
  const schema = buildSchema(await readFile(join(repository, "schema.graphql"), "utf8"));
  const found = await readObjects();
  const fields = Object.values(
    (kind === "Query" ? schema.getQueryType() : schema.getMutationType())!.getFields(),
  );
  return markdownTable(
    ["Operation", "Defined by", "File"],
    fields
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .map((field) => {
        const [what, file] = definedIn(field, found);
        return [`\`${field.name}\``, what, `[${file.replace(`${objects}/`, "")}](../${file})`];
      }),
  );
}
