/**
 * The reference as Markdown, for agents and other programs that read text. It is generated from the served schema and
 * the guides.
 */
import {
  getNamedType,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLInputType,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isUnionType,
} from "postgraphile/graphql";
import { codesOf, domainNames, domainOf, stateNameOf } from "./assets/entries.js";
import type { Facts } from "./referenceFacts.ts";

type Field = GraphQLField<unknown, unknown>;
type Operation = { kind: "query" | "mutation" | "subscription"; name: string; domain: string; about: Field };
type Type = { kind: "type"; name: string; domain: string; about: GraphQLNamedType };
type Entry = Operation | Type;

/** Aggregates and similar types are not listed, because they would hide the others; links lead to them. */
const isListed = ({ kind, name }: Entry): boolean =>
  kind !== "type" ||
  !/(Aggregates|Payload|Input|Connection|Edge|Filter|OrderBy|Sort|Range|Conditions?)$/.test(name);

/** The file of a domain: `webhooks-and-events`. */
const fileOf = (domain: string): string => domain.toLowerCase().replaceAll(" ", "-");

/** The domains with their paths. */
export const domains: readonly { name: string; path: string }[] = domainNames.map((name) => ({
  name,
  path: `/reference/domains/${fileOf(name)}.md`,
}));

const linkTo = (name: string, text = name): string => `[${text}](/reference/${name}.md)`;
const typeLink = (type: GraphQLOutputType | GraphQLInputType): string =>
  linkTo(getNamedType(type).name, `\`${type}\``);
/** A description within an item of a list. */
const inLine = (text: string | null | undefined): string => (text ?? "").trim().replaceAll(/\s*\n\s*/g, " ");
const fenced = (language: string, text: string): string => `\`\`\`${language}\n${text}\n\`\`\``;
const deprecation = (reason: string | null | undefined): string =>
  reason == null ? "" : ` **Deprecated.** ${inLine(reason)}`;

const argumentOf = ({ name, type, description, deprecationReason, defaultValue }: GraphQLArgument): string =>
  `\`${name}\` ${typeLink(type)}: ${inLine(description)}${
    defaultValue === undefined ? "" : ` Default: \`${JSON.stringify(defaultValue)}\`.`
  }${deprecation(deprecationReason)}`;

const fieldOf = ({ name, type, description, deprecationReason, args }: Field): string =>
  [
    `- \`${name}\` ${typeLink(type)}: ${inLine(description)}${deprecation(deprecationReason)}`,
    ...args.map((arg) => `  - ${argumentOf(arg)}`),
  ].join("\n");

const section = (title: string, items: readonly string[], between = "\n"): string[] =>
  items.length > 0 ? [`## ${title}`, items.join(between)] : [];

const inputFieldsOf = (about: Field): { type: string; fields: GraphQLInputField[] } | undefined => {
  const type = getNamedType(about.args.find(({ name }) => name === "input")?.type);
  return isInputObjectType(type) ? { type: type.name, fields: Object.values(type.getFields()) } : undefined;
};

function membersOf(type: GraphQLNamedType): string[] {
  if (isInputObjectType(type))
    return section(
      "Members",
      Object.values(type.getFields()).map((field) => `- ${argumentOf(field as GraphQLArgument)}`),
    );
  if (isEnumType(type))
    return section(
      "Values",
      type
        .getValues()
        .map(
          ({ name, description, deprecationReason }) =>
            `- \`${name}\`: ${inLine(description)}${deprecation(deprecationReason)}`,
        ),
    );
  if (isUnionType(type))
    return section(
      "Types",
      type.getTypes().map(({ name }) => `- ${linkTo(name)}`),
    );
  if (isObjectType(type) || isInterfaceType(type))
    return section("Fields", Object.values(type.getFields()).map(fieldOf));
  return [];
}

function statesOf(name: string, steps: Facts["states"][string]): string[] {
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const listed = (states: readonly string[]) => states.join(", ") || "–";
  return section(`States: ${name}`, [
    row(["From", "Manually to", "By the service to"]),
    row(["---", "---", "---"]),
    ...steps.map(({ from, byHand, byService }) => row([from, listed(byHand), listed(byService)])),
  ]);
}

const exampleOf = ({ title, document, variables, answer, events }: Facts["examples"][number]): string =>
  [
    `### ${title}`,
    fenced("graphql", document),
    ...(variables ? ["Variables:", fenced("json", JSON.stringify(variables, null, 2))] : []),
    ...(answer === undefined ? [] : ["Answer:", fenced("json", JSON.stringify(answer, null, 2))]),
    ...(events?.length ? [`Causes ${events.map((name) => `\`${name}\``).join(", ")}.`] : []),
  ].join("\n\n");

/** The texts of the reference by their paths below `/reference/`, without `.md`. The path of the overview is empty. */
export class MarkdownReference {
  readonly #entries: Entry[];
  readonly #facts: Facts;

  constructor(schema: GraphQLSchema, facts: Facts) {
    this.#facts = facts;
    const roots = {
      query: schema.getQueryType(),
      mutation: schema.getMutationType(),
      subscription: schema.getSubscriptionType(),
    };
    const operations = Object.entries(roots).flatMap(([kind, root]) =>
      Object.values(root?.getFields() ?? {}).map((about) => ({ kind, name: about.name, about })),
    );
    const types = Object.values(schema.getTypeMap())
      .filter((type) => !type.name.startsWith("__") && !Object.values(roots).includes(type as never))
      .map((about) => ({ kind: "type", name: about.name, about }));
    this.#entries = [...operations, ...types].map(
      (entry) => ({ ...entry, domain: domainOf(entry.name) }) as Entry,
    );
  }

  /** @returns undefined if there is no such text */
  text(path: string): string | undefined {
    if (path === "") return this.#overview();
    const domain = domainNames.find((name) => path === `domains/${fileOf(name)}`);
    if (domain) return this.#domain(domain);
    // A query and a subscription may have the same name.
    const found = this.#entries.filter(({ name }) => name === path);
    return found.length > 0 ? found.map((entry) => this.#entry(entry)).join("\n") : undefined;
  }

  #overview(): string {
    const operations = this.#entries.filter(({ kind }) => kind !== "type").length;
    const count = (domain: string) =>
      this.#entries.filter((entry) => entry.domain === domain && entry.kind !== "type").length;
    return this.#join([
      "# Reference",
      `${operations} operations and ${this.#entries.length - operations} types. Every operation and type has a text at \`/reference/NAME.md\`, such as ${linkTo(this.#entries[0]!.name)}. Operations are POSTs to \`/graphql\`: [transport](/guides/transport.md), [errors](/guides/errors.md), [what a query may cost](/guides/queries.md).`,
      ...section(
        "Domains",
        domains.map(({ name, path }) => `- [${name}](${path}): ${count(name)} operations`),
      ),
      ...section("Deprecated", this.#deprecated()),
    ]);
  }

  #deprecated(): string[] {
    return this.#entries.flatMap(({ name, kind, about }) => {
      const own = kind === "type" ? undefined : about.deprecationReason;
      const members =
        "getValues" in about
          ? about.getValues()
          : "getFields" in about
            ? Object.values<Field | GraphQLInputField>(about.getFields())
            : [];
      return [
        ...(own == null ? [] : [`- ${linkTo(name)}:${deprecation(own)}`]),
        ...members
          .filter(({ deprecationReason }) => deprecationReason != null)
          .map((member) => `- ${linkTo(name)}.\`${member.name}\`:${deprecation(member.deprecationReason)}`),
      ];
    });
  }

  #domain(domain: string): string {
    const here = this.#entries.filter((entry) => entry.domain === domain && isListed(entry));
    const titles = { query: "Queries", mutation: "Mutations", subscription: "Subscriptions", type: "Types" };
    return this.#join([
      `# ${domain}`,
      ...Object.entries(titles).flatMap(([kind, title]) =>
        section(
          title,
          here
            .filter((entry) => entry.kind === kind)
            .toSorted((one, other) => one.name.localeCompare(other.name))
            .map(({ name, about }) => `- ${linkTo(name)}: ${inLine(about.description)}`),
        ),
      ),
    ]);
  }

  #entry(entry: Entry): string {
    const { name, kind, domain, about } = entry;
    const machine = stateNameOf(about, this.#facts.states);
    const examples = this.#facts.examples.filter((example) => example.about.includes(name));
    return this.#join([
      `# ${name}`,
      `${kind[0]!.toUpperCase()}${kind.slice(1)}, ${domain}.${kind === "type" ? "" : deprecation(about.deprecationReason)}`,
      about.description ?? "",
      ...(kind === "type" ? membersOf(about) : this.#operation(entry)),
      ...(machine && (kind === "type" || kind === "mutation")
        ? statesOf(machine, this.#facts.states[machine]!)
        : []),
      ...section("Examples", examples.map(exampleOf), "\n\n"),
      ...(kind === "type" ? section("Operations", this.#usersOf(about)) : []),
    ]);
  }

  #operation({ kind, name, domain, about }: Operation): string[] {
    const input = inputFieldsOf(about);
    const takes = kind === "mutation" ? this.#facts.permissions[name] : undefined;
    const codes = codesOf({ kind, name, about }, input?.fields, this.#facts);
    return [
      `Answers ${typeLink(about.type)}. Other operations: [${domain}](/reference/domains/${fileOf(domain)}.md).`,
      ...section("Permissions", takes?.map((row) => `- ${row}`) ?? []),
      ...(kind === "query"
        ? [
            "Records that the viewer may not read are missing from lists, and null elsewhere: [permissions](/guides/permissions.md).",
          ]
        : []),
      ...section(
        "Arguments",
        about.args.map((arg) => `- ${argumentOf(arg)}`),
      ),
      ...(input
        ? section(
            `Members of ${input.type}`,
            input.fields.map((field) => `- ${argumentOf(field as GraphQLArgument)}`),
          )
        : []),
      ...section("Errors", [
        `${codes.map((code) => `\`${code}\``).join(", ")}; [what they mean](/guides/errors.md).`,
      ]),
    ];
  }

  /** The operations that return a type, or have an argument of it. */
  #usersOf(type: GraphQLNamedType): string[] {
    return this.#entries
      .filter((entry): entry is Operation => entry.kind !== "type")
      .filter(
        ({ about }) =>
          getNamedType(about.type) === type || about.args.some((arg) => getNamedType(arg.type) === type),
      )
      .map(({ kind, name }) => `- ${linkTo(name)} (${kind})`);
  }

  #join(parts: readonly string[]): string {
    return `${parts.filter(Boolean).join("\n\n")}\n`;
  }
}
