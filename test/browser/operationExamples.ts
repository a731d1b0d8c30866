/**
 * Finds an example for each operation that src/http/portal/examples.ts does not show: a document with a few fields of
 * the result, a working input, and a query for the ids in it. Mutations are dry runs if they support them.
 */
import {
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  isScalarType,
  parse,
  print,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLOutputType,
  type GraphQLSchema,
} from "graphql";
import { filledVariables, valueAt } from "../../src/http/portal/assets/entries.js";
import { examples, type Example } from "../../src/http/portal/examples.ts";

import { hints, preparations, prepareStates, records } from "./operationHints.ts";

type Needs = NonNullable<Example["needs"]>;
export type OperationExample = Pick<Example, "name" | "title" | "about" | "document" | "variables" | "needs">;
/** Runs a document as the owner of the demo's organization. */
export type Ask = (body: {
  query: string;
  variables?: unknown;
}) => Promise<{ data?: any; errors?: any[]; extensions?: any; requestId?: string | undefined }>;

/** Functions besides the API that recordings need. */
export interface Surroundings {
  /** Runs documents as another person of the demo. */
  as(email: string): Promise<Ask>;
  /** The code in the latest mail to a person that matches the pattern. */
  mailed(to: string, pattern: RegExp): Promise<string>;
  /** A URL on this machine that accepts all POST requests. */
  receiver: string;
  /** The names of the events that a request itself has written, once they can be read. */
  eventsOf(requestId: string | undefined): Promise<string[]>;
}

/** How to call an operation if its schema is not sufficient; `$Type` is replaced by the id of such a record. */
export interface Hint {
  input?: Record<string, unknown> | undefined;
  /** The user who executes it. Default: the owner of the demo's organization. */
  as?: string;
  /** Replaces fields of the input that must differ between runs; the example shows those of `input`. */
  fill?: (surroundings: Surroundings) => Promise<Record<string, unknown>>;
  /** Arguments of a query. */
  variables?: Record<string, unknown>;
  selection?: string;
  title?: string;
}

const picture =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const pdf = `data:application/pdf;base64,${Buffer.from("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n").toString("base64")}`;

/** An id that does not exist in the demo. */
const nobody = "01900000-0000-7000-8000-000000000000";

/** Descriptive fields of records, in the order in which they are shown. */
const telling =
  /^(id|title|name|fullName|label|number|key|status|kind|type|role|email|text|price|amount|percent|quantity|startsAt|dueAt|isRead|deletedId|deletedType|totalCount)$/;

/** Values of fields by name, for types that are not specific enough. */
const samples: Record<string, unknown> = {
  email: "robin.vale@example.com",
  password: "demo-password",
  firstName: "Robin",
  lastName: "Vale",
  name: "Robin Vale",
  author: "Robin Vale",
  title: "From the reference",
  text: "Called back; wants to see the balcony.",
  message: "When does the next phase open?",
  number: "27",
  phone: "416 555 0199",
  description: "From the reference.",
  reason: "No longer needed.",
  startsAt: "2031-05-04T15:00:00Z",
  endsAt: "2031-05-04T16:00:00Z",
  at: "2030-01-01T00:00:00Z",
  runAt: "2031-05-04T15:00:00Z",
  expiresAt: "2031-05-04T15:00:00Z",
  dueAt: "2031-05-04T15:00:00Z",
  percent: "2.5",
  url: "https://crm.example.com/plat",
  acceptedTerms: true,
  organizationId: "larkfield-homes",
  projectId: "larkfield-gardens",
};

type Field = GraphQLField<unknown, unknown>;
const isRequired = (field: { type: GraphQLInputType; defaultValue?: unknown }) =>
  isNonNullType(field.type) && field.defaultValue === undefined;
const isFree = (field: Field) => field.args.every((argument) => !isRequired(argument));
const paged = (field: Field, most: number) =>
  field.args.some(({ name }) => name === "first") ? `${field.name}(first: ${most})` : field.name;

/** Paths from a query to the id of each type, the shortest first. */
function lookups(schema: GraphQLSchema): Map<string, { query: string; path: string }[]> {
  const found = new Map<string, { query: string; path: string }[]>();
  const starts = [
    ...Object.values(schema.getQueryType()!.getFields())
      .filter((field) => isFree(field) && isListType(getNullableType(field.type)))
      .map((field) => ({ field, head: paged(field, 40) })),
    ...[["organization", "larkfield-homes"]].map(([name, id]) => ({
      field: schema.getQueryType()!.getFields()[name!]!,
      head: `${name}(id: "${id}")`,
    })),
    { field: schema.getQueryType()!.getFields().viewer!, head: "viewer" },
  ];
  let level = starts.map(({ field, head }) => ({
    type: field.type as GraphQLOutputType,
    wrap: (inner: string) => `{ ${head} { ${inner} } }`,
    path: [field.name, ...(isListType(getNullableType(field.type)) ? ["*"] : [])],
    through: new Set<string>(),
  }));
  for (let depth = 0; depth < 4; depth += 1) {
    const next: typeof level = [];
    for (const { type, wrap, path, through } of level) {
      const named = getNamedType(type);
      if (!isObjectType(named) || through.has(named.name) || named.name.endsWith("Connection")) continue;
      if ("id" in named.getFields()) {
        const known = found.get(named.name) ?? [];
        found.set(named.name, known);
        if (known.length < 12) known.push({ query: wrap("id"), path: [...path, "id"].join(".") });
      }
      for (const field of Object.values(named.getFields())) {
        const isList = isListType(getNullableType(field.type));
        if (!isFree(field) || field.deprecationReason !== undefined || (depth > 0 && !isList && depth > 1))
          continue;
        if (!isObjectType(getNamedType(field.type))) continue;
        next.push({
          type: field.type,
          wrap: (inner) => wrap(`${paged(field, 20)} { ${inner} }`),
          path: [...path, field.name, ...(isList ? ["*"] : [])],
          through: new Set([...through, named.name]),
        });
      }
    }
    level = next;
  }
  return found;
}

/** A few fields of an operation's result. */
function selectionOf(output: GraphQLOutputType, depth = 0): string {
  const type = getNamedType(output);
  if (isLeafType(type) || !isObjectType(type)) return isLeafType(type) ? "" : "{ __typename }";
  const fields = Object.values(type.getFields()).filter((field) => isFree(field) && !field.deprecationReason);
  if ("edges" in type.getFields()) {
    const edge = getNamedType(type.getFields().edges!.type);
    const node = isObjectType(edge) ? edge.getFields().node!.type : output;
    return `{ totalCount edges { node ${selectionOf(node, 1)} } }`;
  }
  const isLeaf = (field: Field) =>
    isLeafType(getNamedType(field.type)) &&
    !/secret|token|password|code|ur[il]|version|At$|date|sequence/i.test(field.name);
  let shown = fields.filter((field) => telling.test(field.name) && isLeaf(field)).slice(0, 5);
  if (shown.length < 2) shown = [...new Set([...shown, ...fields.filter(isLeaf)])].slice(0, 4);
  const within = fields.filter((field) => isObjectType(getNamedType(field.type)));
  if (shown.length === 0 && (depth > 0 || within.length === 0)) return "{ __typename }";
  if (shown.length === 0)
    return `{ ${within
      .slice(0, 1)
      .map((field) => `${field.name} ${selectionOf(field.type, 1)}`)
      .join(" ")} }`;
  return `{ ${shown.map(({ name }) => name).join(" ")} }`;
}

const capitalized = (name: string) => name[0]!.toUpperCase() + name.slice(1);

export class OperationExamples {
  readonly #schema: GraphQLSchema;
  readonly #ask: Ask;
  readonly #hints: Readonly<Record<string, Hint>>;
  readonly #lookups: ReturnType<typeof lookups>;
  readonly #known: Map<string, { query: string; path: string }>;

  constructor(
    schema: GraphQLSchema,
    ask: Ask,
    hintsOf: Readonly<Record<string, Hint>>,
    recordsOf: Readonly<Record<string, { query: string; path: string }>>,
  ) {
    this.#known = new Map(Object.entries(recordsOf));
    this.#schema = schema;
    this.#ask = ask;
    this.#hints = hintsOf;
    this.#lookups = lookups(schema);
  }

  /** The query that finds the id of a record of the type, and the path of the id. */
  async #lookup(type: string): Promise<{ query: string; path: string } | undefined> {
    const known = this.#known.get(type);
    if (known) {
      const { data } = await this.#ask({ query: known.query });
      return valueAt(data, known.path) === undefined ? undefined : known;
    }
    for (const candidate of this.#lookups.get(type) ?? []) {
      const { data } = await this.#ask({ query: candidate.query });
      if (valueAt(data, candidate.path) === undefined) continue;
      this.#known.set(type, candidate);
      return candidate;
    }
    return undefined;
  }

  /** The type whose id a field contains. */
  #typeOf(field: string, operation: Field): string {
    if (field !== "id" && field !== "ids") {
      const name = capitalized(field.replace(/Ids?$/, ""));
      if (this.#schema.getType(name)) return name;
      return (
        {
          Into: "Lead",
          Subject: "Lead",
          Category: "SpecCategory",
          Element: "SpecElement",
          Charge: "ProcessorCharge",
        }[name] ?? name
      );
    }
    const returned = getNamedType(operation.type).name;
    const deleted = /^Delete(\w+)Payload$/.exec(returned)?.[1];
    if (deleted === "ElevationImage") return "FloorPlanElevationImage";
    return deleted ?? returned;
  }

  #sample(field: GraphQLInputField | { name: string; type: GraphQLInputType }, operation: Field): unknown {
    if (field.name in samples && !isListType(getNullableType(field.type))) {
      const named = getNamedType(field.type);
      if (!isEnumType(named)) return samples[field.name];
    }
    const type = getNullableType(field.type);
    if (isListType(type))
      return [this.#sample({ name: field.name.replace(/s$/, ""), type: type.ofType }, operation)];
    if (isEnumType(type)) return type.getValues()[0]!.name;
    if (isInputObjectType(type))
      return Object.fromEntries(
        Object.values(type.getFields())
          .filter(isRequired)
          .map((one) => [one.name, this.#sample(one, operation)]),
      );
    if (!isScalarType(type)) return null;
    switch (type.name) {
      case "ID":
        return `$${this.#typeOf(field.name, operation)}`;
      case "Int":
        return 1;
      case "Decimal":
        return "1500.00";
      case "Boolean":
        return true;
      case "DateTime":
        return "2031-05-04T15:00:00Z";
      case "Date":
        return "2031-05-04";
      case "Upload":
        return /document|agreement|import/i.test(operation.name) ? pdf : picture;
      default:
        return "From the reference";
    }
  }

  /** An example of an operation. */
  async find(operation: Field, isMutation: boolean): Promise<OperationExample> {
    const hint = this.#hints[operation.name] ?? {};
    const inputType = isMutation ? getNamedType(operation.args[0]!.type) : undefined;
    const fields = isInputObjectType(inputType) ? inputType.getFields() : {};
    const takes = isMutation ? Object.values(fields) : operation.args;
    const required = takes.filter(isRequired);
    let values: Record<string, unknown> = Object.fromEntries(
      required.map((field) => [field.name, this.#sample(field, operation)]),
    );
    if (!isMutation && operation.args.some(({ name }) => name === "first")) values.first = 2;
    if (operation.name.startsWith("update") && !hint.input) {
      const change = takes.find((field) =>
        /^(title|name|text|description|notes|caption|label|internalNotes|position)$/.test(field.name),
      );
      if (change) values[change.name] = this.#sample(change, operation);
    }
    values = { ...values, ...(isMutation ? hint.input : hint.variables) };
    const dryRun = fields.dryRun?.description ?? "";
    if (isMutation && !dryRun.includes("has no dry run")) values.dryRun = true;
    const variables = isMutation ? { input: values } : values;
    const needs = await this.#needs(variables);
    const used = isMutation
      ? [{ name: "input", type: operation.args[0]!.type }]
      : operation.args.filter(({ name }) => name in values);
    const name = `${capitalized(operation.name)}Operation`;
    const declared = used.map((one) => `$${one.name}: ${one.type}`).join(", ");
    const given = used.map((one) => `${one.name}: $${one.name}`).join(", ");
    const document = print(
      parse(
        `${isMutation ? "mutation" : "query"} ${name}${declared ? `(${declared})` : ""} { ${operation.name}${
          given ? `(${given})` : ""
        } ${hint.selection ?? selectionOf(operation.type)} }`,
      ),
    );
    return {
      name,
      title: hint.title ?? "",
      about: [operation.name],
      document,
      ...(Object.keys(variables).length > 0 && { variables: needs.variables }),
      ...(needs.needs && { needs: needs.needs }),
    };
  }

  /** Replaces `$Type` by an empty text, and returns the query for its value. */
  async #needs(variables: object): Promise<{ variables: Record<string, unknown>; needs?: Needs }> {
    const paths: Record<string, string> = {};
    const queries = new Map<string, number>();
    const clean = async (value: any, at: string): Promise<any> => {
      if (typeof value === "string" && /^\$[A-Z]/.test(value)) {
        const lookup = await this.#lookup(value.slice(1));
        if (!lookup) return nobody;
        if (!queries.has(lookup.query)) queries.set(lookup.query, queries.size);
        // Each query has a separate alias.
        const alias = `found${queries.get(lookup.query)! + 1}`;
        paths[at] = `${alias}.${lookup.path.split(".").slice(1).join(".")}`;
        return "";
      }
      if (Array.isArray(value)) return Promise.all(value.map((one, index) => clean(one, `${at}.${index}`)));
      if (typeof value === "object" && value !== null) {
        const entries = [];
        for (const [key, one] of Object.entries(value))
          entries.push([key, await clean(one, at ? `${at}.${key}` : key)]);
        return Object.fromEntries(entries);
      }
      return value;
    };
    const cleaned = await clean(variables, "");
    if (queries.size === 0) return { variables: cleaned };
    const query = `{ ${[...queries].map(([text, index]) => `found${index + 1}: ${text.trim().slice(1, -1).trim()}`).join(" ")} }`;
    return { variables: cleaned, needs: { query, variables: paths } };
  }
}

/** An example with the response of the service, and the names of the events that it writes. */
export type RecordedExample = OperationExample & { answer: unknown; events: string[] };

/** Whether it is a mutation that stores its changes, not a dry run. */
const isReal = ({ document, variables }: OperationExample): boolean =>
  document.startsWith("mutation") && (variables?.input as { dryRun?: boolean } | undefined)?.dryRun !== true;

/**
 * Runs the examples, starting with those that store something, because the others may need their records.
 * @param options.known examples of the last recording. Default: they are generated
 */
export async function recordOperations(options: {
  schema: GraphQLSchema;
  ask: Ask;
  surroundings: Surroundings;
  steady: (value: unknown) => unknown;
  known: readonly RecordedExample[] | undefined;
  /** Whether an example is run that others do not need. */
  isChosen?: (index: number) => boolean;
}): Promise<RecordedExample[]> {
  const { schema, ask, surroundings, steady, known, isChosen = () => true } = options;
  const finder = new OperationExamples(schema, ask, hints, records);
  const fields = [schema.getQueryType()!, schema.getMutationType()!].flatMap((root) =>
    Object.values(root.getFields()).map((field) => ({
      field,
      isMutation: root === schema.getMutationType(),
    })),
  );
  /** Results of queries for ids; later operations do not change them. */
  const found = new Map<string, unknown>();
  const run = async (example: OperationExample) => {
    const { needs, document } = example;
    if (needs && !found.has(needs.query)) found.set(needs.query, (await ask({ query: needs.query })).data);
    const variables = filledVariables(example, needs && found.get(needs.query));
    const { as, fill } = hints[example.about[0]!] ?? {};
    if (fill) variables.input = { ...(variables.input as object), ...(await fill(surroundings)) };
    return await (as ? await surroundings.as(as) : ask)({ query: document, variables });
  };
  const exampleOf = async (name: string): Promise<OperationExample> => {
    const last = known?.find(({ about }) => about[0] === name);
    if (last) return last;
    const { field, isMutation } = fields.find((one) => one.field.name === name)!;
    return await finder.find(field, isMutation);
  };
  const recorded: RecordedExample[] = [];
  const record = async (name: string, example: OperationExample) => {
    const { data, errors, extensions, requestId } = await run(example);
    const { about, document, variables, needs } = example;
    const events: string[] =
      !errors && name.startsWith("upload")
        ? await surroundings.eventsOf(requestId)
        : (extensions?.effects?.events ?? []).map((event: { name: string }) => event.name);
    const code = errors?.[0].extensions?.code as string | undefined;
    const isDry = (variables?.input as { dryRun?: boolean } | undefined)?.dryRun === true;
    const outcome = code
      ? `Refused: ${code}`
      : data[name] === null
        ? "Nothing that the viewer can see"
        : isDry
          ? "As a dry run"
          : "In the demo";
    for (const error of errors ?? []) delete error.extensions.requestId;
    recorded.push({
      name: example.name,
      title: hints[name]?.title ?? outcome,
      about,
      document,
      ...(variables && { variables }),
      ...(needs && { needs }),
      answer: steady(errors ? { errors, data } : { data }),
      events: [...new Set(events)].toSorted(),
    });
  };
  for (const name of preparations) {
    const example = await exampleOf(name);
    const { dryRun: _, ...input } = example.variables!.input as Record<string, unknown>;
    // With another name than the example.
    for (const field of ["name", "title"])
      if (typeof input[field] === "string") input[field] = `${input[field]} 2`;
    const { errors } = await run({ ...example, variables: { input } });
    if (errors && errors[0].extensions.code !== "CONFLICT") throw new Error(`${name}: ${errors[0].message}`);
  }
  await prepareStates(ask);
  found.clear();
  const shown = new Set(examples.flatMap(({ about }) => about));
  const names = fields.map(({ field }) => field.name).filter((name) => !shown.has(name));
  const isFirst = (name: string) => /^(upload|create(ProcessorC|PaymentI|OrganizationI|UserI))/.test(name);
  const chosen = names.filter((name, index) => isFirst(name) || isChosen(index));
  for (const name of chosen.toSorted((a, b) => Number(isFirst(b)) - Number(isFirst(a)))) {
    const example = await exampleOf(name);
    await record(name, example);
    if (isReal(example)) found.clear();
  }
  return recorded.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
