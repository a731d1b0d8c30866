/**
 * Generates the documents of all operations from the served schema, with their types: for each field of Query
 * and Mutation a document with all arguments as variables, which selects the values of the result without
 * related records.
 */
import {
  type GraphQLEnumType,
  type GraphQLField,
  type GraphQLInputObjectType,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  type GraphQLType,
  getNamedType,
  getNullableType,
  isAbstractType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
} from "graphql";

/** Types of scalars in TypeScript: for results, and for input if that accepts more. */
export const scalars: Readonly<Record<string, { output: string; input?: string }>> = {
  ID: { output: "string" },
  String: { output: "string" },
  Int: { output: "number" },
  Float: { output: "number" },
  Boolean: { output: "boolean" },
  BigInt: { output: "string", input: "string | number" },
  CountryCode: { output: "string" },
  CurrencyCode: { output: "string" },
  Cursor: { output: "string" },
  Date: { output: "string" },
  DateTime: { output: "string", input: "string | Date" },
  Decimal: { output: "string", input: "string | number" },
  EmailAddress: { output: "string" },
  JSON: { output: "unknown" },
  LanguageCode: { output: "string" },
  PhoneNumber: { output: "string" },
  URL: { output: "string" },
  Upload: { output: "never", input: "Blob | string" },
};

/** A document with this number of nested levels is complete. */
const DEEPEST = 3;

const comment = (text: string | null | undefined, indent = "") =>
  text ? `${indent}/** ${text.replaceAll("*/", "*\\/").replace(/\s*\n\s*/g, " ")} */\n` : "";
const upper = (name: string) => `${name[0]!.toUpperCase()}${name.slice(1)}`;
const lower = (name: string) => `${name[0]!.toLowerCase()}${name.slice(1)}`;

/** The generated files of the package, by name. */
export function generate(schema: GraphQLSchema): Record<string, string> {
  const writer = new Writer(schema);
  return { ...writer.documents(), ...cacheFiles(schema) };
}

interface Selection {
  /** The selection of a fragment, without its braces. */
  text: string;
  /** The fields of the TypeScript type. */
  members: string;
}

class Writer {
  readonly #schema: GraphQLSchema;
  /** By the name of the type. */
  readonly #fragments = new Map<string, Selection>();
  readonly #used = new Set<string>();

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  documents(): Record<string, string> {
    const js: string[] = [];
    const types: string[] = [];
    for (const [operation, root] of [
      ["query", this.#schema.getQueryType()],
      ["mutation", this.#schema.getMutationType()],
    ] as const) {
      for (const field of Object.values(root?.getFields() ?? {})) {
        if (field.deprecationReason) continue;
        const made = this.#operation(operation, field);
        js.push(made.js);
        types.push(made.types);
      }
    }
    const fragments = [...this.#fragments].toSorted(([a], [b]) => (a < b ? -1 : 1));
    const inputs = Object.values(this.#schema.getTypeMap())
      .filter(({ name }) => !name.startsWith("__"))
      .flatMap((type) =>
        isEnumType(type) ? [enumType(type)] : isInputObjectType(type) ? [inputType(type)] : [],
      );
    const note = "// Made from the schema by scripts/generate.ts.\n";
    return {
      "documents.js": [
        note,
        // Bundlers keep an unused concatenation of texts; an annotated call can be removed.
        'const text = (...parts) => parts.join("");\n',
        ...fragments.map(
          ([name, { text }]) =>
            `export const ${lower(name)}Fields = ${JSON.stringify(`fragment ${name}Fields on ${name}{${text}}`)};\n`,
        ),
        ...js,
      ].join(""),
      "documents.d.ts": [
        note,
        'import type { TypedDocument } from "./document.js";\n',
        ...inputs,
        ...fragments.map(
          ([name, { members }]) =>
            `${comment(this.#schema.getType(name)?.description)}export interface ${name}Fields {\n${members}}\n/** The fragment ${name}Fields. */\nexport declare const ${lower(name)}Fields: string;\n`,
        ),
        ...types,
      ].join(""),
    };
  }

  #operation(
    operation: "query" | "mutation",
    field: GraphQLField<unknown, unknown>,
  ): { js: string; types: string } {
    const args = field.args.filter(({ deprecationReason }) => !deprecationReason);
    const defined = args.map(({ name, type }) => `$${name}:${String(type)}`).join(",");
    const given = args.map(({ name }) => `${name}:$${name}`).join(",");
    this.#used.clear();
    const selected = this.#ofField(field.type);
    const parens = (text: string) => (text === "" ? "" : `(${text})`);
    const text = `${operation} ${upper(field.name)}${parens(defined)}{${field.name}${parens(given)}${selected.text}}`;
    const name = `${field.name}${upper(operation)}`;
    const parts = [JSON.stringify(text), ...[...this.#used].map((type) => `${lower(type)}Fields`)];
    const variables = args.map(
      (argument) =>
        `${comment(argument.description, "  ")}  ${argument.name}${isRequiredArgument(argument) ? "" : "?"}: ${inputTs(argument.type)};\n`,
    );
    return {
      js: `export const ${name} = /* @__PURE__ */ text(${parts.join(", ")});\n`,
      types: `export interface ${upper(name)}Variables {\n${variables.join("")}}
export interface ${upper(name)} {
${comment(field.description, "  ")}  ${field.name}: ${selected.type};
}
${comment(field.description)}export declare const ${name}: TypedDocument<${upper(name)}, ${upper(name)}Variables>;
`,
    };
  }

  /** The selection of a field in braces, and the type of its value. */
  #ofField(type: GraphQLOutputType): { text: string; type: string } {
    const named = getNamedType(type);
    if (isLeafType(named)) return { text: "", type: outputTs(type, leafTs(named)) };
    const connection = isObjectType(named) ? nodeOf(named) : undefined;
    if (connection) {
      const nodes = this.#ofField(connection.type);
      const page = this.#ofField((named as GraphQLObjectType).getFields()["pageInfo"]!.type);
      const shape = `{ nodes: ${nodes.type}; pageInfo: ${page.type} }`;
      return { text: `{nodes${nodes.text} pageInfo${page.text}}`, type: outputTs(type, shape) };
    }
    if (isAbstractType(named)) {
      const kinds = this.#schema.getPossibleTypes(named).map(({ name }) => JSON.stringify(name));
      const ids = this.#schema.getPossibleTypes(named).map(({ name }) => `...on ${name}{id}`);
      const id = isInterfaceType(named) && named.getFields()["id"] ? "id" : ids.join(" ");
      return {
        text: `{__typename ${id}}`,
        type: outputTs(type, `{ __typename: ${kinds.join(" | ")}; id: string }`),
      };
    }
    this.#fragment(named as GraphQLObjectType, 1);
    return { text: `{...${named.name}Fields}`, type: outputTs(type, `${named.name}Fields`) };
  }

  /** Selects all values of a type, and those of parts without an id. */
  #fragment(type: GraphQLObjectType, depth: number): void {
    this.#used.add(type.name);
    const known = this.#fragments.get(type.name);
    if (known) {
      for (const [, used] of known.text.matchAll(/\.\.\.(\w+)Fields/g))
        if (!this.#used.has(used!))
          this.#fragment(this.#schema.getType(used!) as GraphQLObjectType, depth + 1);
      return;
    }
    const selection: Selection = { text: "", members: "" };
    this.#fragments.set(type.name, selection);
    const parts: string[] = ["__typename"];
    let members = `  __typename: ${JSON.stringify(type.name)};\n`;
    for (const field of Object.values(type.getFields())) {
      if (field.deprecationReason || field.args.some(isRequiredArgument)) continue;
      const named = getNamedType(field.type);
      let made: { text: string; type: string } | undefined;
      if (isLeafType(named)) made = this.#ofField(field.type);
      else if (isObjectType(named) && isValue(named) && depth < DEEPEST) {
        this.#fragment(named, depth + 1);
        made = { text: `{...${named.name}Fields}`, type: outputTs(field.type, `${named.name}Fields`) };
      } else if (isReference(type, field))
        made = { text: "{id}", type: outputTs(field.type, "{ id: string }") };
      if (!made) continue;
      parts.push(`${field.name}${made.text}`);
      members += `${comment(field.description, "  ")}  ${field.name}: ${made.type};\n`;
    }
    selection.text = parts.join(" ");
    selection.members = members;
  }
}

/** The field `nodes` of a connection. */
function nodeOf(type: GraphQLObjectType) {
  const { nodes, pageInfo } = type.getFields();
  return nodes && pageInfo ? nodes : undefined;
}

/** Whether a type has no id, because it is a part of another record. */
function isValue(type: GraphQLObjectType): boolean {
  const fields = type.getFields();
  return !fields["id"] && !fields["nodes"] && !/Aggregate/.test(type.name);
}

/** Whether a field leads to one record whose id is in no other field. */
function isReference(type: GraphQLObjectType, field: GraphQLField<unknown, unknown>): boolean {
  const named = getNamedType(field.type);
  return (
    isObjectType(named) &&
    Boolean(named.getFields()["id"]) &&
    !isListType(getNullableType(field.type)) &&
    !type.getFields()[`${field.name}Id`]
  );
}

const leafTs = (type: GraphQLNamedType): string => {
  if (isEnumType(type)) return type.name;
  const known = scalars[type.name];
  if (!known) throw new Error(`scripts/generate.ts does not know the scalar ${type.name}.`);
  return known.output;
};

function outputTs(type: GraphQLType, inner: string): string {
  if (isNonNullType(type)) return notNull(type.ofType, inner);
  return `${notNull(type, inner)} | null`;
  function notNull(of: GraphQLType, named: string): string {
    return isListType(of) ? `(${outputTs(of.ofType as GraphQLType, named)})[]` : named;
  }
}

function inputTs(type: GraphQLType): string {
  if (isNonNullType(type)) return notNull(type.ofType);
  return `${notNull(type)} | null`;
  function notNull(of: GraphQLType): string {
    if (isListType(of)) return `readonly (${inputTs(of.ofType as GraphQLType)})[]`;
    const named = of as GraphQLNamedType;
    if (isInputObjectType(named)) return named.name;
    return isEnumType(named) ? named.name : (scalars[named.name]?.input ?? leafTs(named));
  }
}

const enumType = (type: GraphQLEnumType): string =>
  `${comment(type.description)}export type ${type.name} = ${type
    .getValues()
    .map(({ name }) => JSON.stringify(name))
    .join(" | ")};\n`;

const inputType = (type: GraphQLInputObjectType): string =>
  `${comment(type.description)}export interface ${type.name} {\n${Object.values(type.getFields())
    .filter(({ deprecationReason }) => !deprecationReason)
    .map(
      (field) =>
        `${comment(field.description, "  ")}  ${field.name}${isRequiredInputField(field) ? "" : "?"}: ${inputTs(field.type)};\n`,
    )
    .join("")}}\n`;

/** Parts of the schema that caches of other clients need. */
function cacheFiles(schema: GraphQLSchema): Record<string, string> {
  const types = Object.values(schema.getTypeMap()).filter(({ name }) => !name.startsWith("__"));
  const possibleTypes = Object.fromEntries(
    types
      .filter(isAbstractType)
      .map((type) => [type.name, schema.getPossibleTypes(type).map(({ name }) => name)]),
  );
  const roots = new Set([schema.getQueryType()?.name, schema.getMutationType()?.name]);
  const typesWithoutId = types
    .filter((type): type is GraphQLObjectType => isObjectType(type))
    .filter((type) => !roots.has(type.name) && !type.getFields()["id"])
    .map(({ name }) => name);
  const scalarTypes = Object.fromEntries(
    Object.entries(scalars).map(([name, { output, input = output }]) => [name, { input, output }]),
  );
  const declared = (name: string, text: string, type: string) =>
    `/** ${text} */\nexport declare const ${name}: ${type};\n`;
  return {
    "schema.js": Object.entries({ possibleTypes, typesWithoutId, scalarTypes })
      .map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};\n`)
      .join(""),
    "schema.d.ts": [
      declared(
        "possibleTypes",
        "Members of unions and interfaces, as caches take them.",
        "Record<string, string[]>",
      ),
      declared(
        "typesWithoutId",
        "Types without an id: parts of the record that has them, which no cache keeps apart.",
        "string[]",
      ),
      declared(
        "scalarTypes",
        "Scalars and their types in TypeScript, as compilers of clients take them (`config.scalars`).",
        "Record<string, { input: string; output: string }>",
      ),
    ].join(""),
  };
}
