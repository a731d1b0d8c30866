/**
 * Checks the served schema by public rules: the recommended ones of graphql-eslint for schemas, and those of Relay. Waivers are listed
 * here, with reasons.
 */
// PERF: the whole package loads schemas from everywhere, which package.json excludes; its rules and the conversion need none of that.
import recommended from "@graphql-eslint/eslint-plugin/configs/schema-recommended";
import relay from "@graphql-eslint/eslint-plugin/configs/schema-relay";
import {
  convertToESTree,
  extractComments,
  extractTokens,
} from "@graphql-eslint/eslint-plugin/estree-converter/index";
import { rules } from "@graphql-eslint/eslint-plugin/rules/index";
import { type ESLint, Linter } from "eslint";
import { buildSchema, type GraphQLSchema, isObjectType, parse } from "postgraphile/graphql";

/** A finding that is accepted. An unused waiver is a finding itself. */
const waivers: readonly { rule: string; found: RegExp; reason: string }[] = [
  {
    rule: "no-typename-prefix",
    found: /^User: Field "username"/,
    reason: "One word for what people sign in with; part of the contract.",
  },
  {
    rule: "no-typename-prefix",
    found: /^Lead: Field "leadSource"/,
    reason: "`source` of a lead is the text of its origin; part of the contract.",
  },
  {
    rule: "relay-connection-types",
    found: /^(OrganizationUserConnection|UserOrganizationConnection): /,
    reason: "Memberships, which connect a user and an organization, not pages of them; part of the contract.",
  },
  {
    rule: "relay-arguments",
    found: /: \w+ returns (OrganizationUserConnection|UserOrganizationConnection)$/,
    reason: "The same.",
  },
  {
    rule: "relay-edge-types",
    found: /^BindingOfferEdge: .* must implement `Node`/,
    reason: "An offer as the other party sees it: its id is that of the offer.",
  },
];

/** Options for rules that reflect decisions about the whole schema. */
const decided = (schema: GraphQLSchema): Linter.RulesRecord => {
  const values = Object.values(schema.getTypeMap()).filter(
    (type) => isObjectType(type) && !type.getInterfaces().some(({ name }) => name === "Node"),
  );
  return {
    // Records are nodes with an id, as the interface requires. All other types are values without an identity.
    "@graphql-eslint/strict-id-in-types": [
      "error",
      { exceptions: { types: values.map(({ name }) => name) } },
    ],
    // Lists exist beside connections, for clients that do not page by cursor.
    "@graphql-eslint/relay-edge-types": ["error", { listTypeCanWrapOnlyEdgeType: false }],
    // The specification requires one direction; the order of lists is an argument.
    "@graphql-eslint/relay-arguments": ["error", { includeBoth: false }],
  };
};

const parser = (schema: GraphQLSchema): Linter.Parser => ({
  parseForESLint(text) {
    const document = parse(text);
    const root = convertToESTree(document, schema);
    return {
      services: { schema, siblingOperations: { available: false } },
      ast: {
        type: "Program",
        sourceType: "script",
        body: [root],
        comments: extractComments(document.loc),
        tokens: extractTokens("schema.graphql", text),
        loc: root.loc,
        range: root.range,
      } as never,
    };
  },
});

/** The place of a line: the type, and the field with its type if the rule depends on it. */
function placeOf(lines: readonly string[], line: number): string {
  const type = lines.slice(0, line).findLast((one) => /^(type|input|interface|union|enum|scalar) /.test(one));
  return type?.split(" ")[1] ?? "Schema";
}

/** The type of the field that begins at a line. */
function returnedAt(lines: readonly string[], line: number): string {
  const [, name = ""] = /^ {2}(\w+)/.exec(lines[line - 1] ?? "") ?? [];
  const end = lines.slice(line - 1).find((one) => /^ {2}\S.*\)?: /.test(one)) ?? "";
  const [, returned = ""] = /: \[?(\w+)[\]!]*(?: @.*)?$/.exec(end) ?? [];
  return `${name} returns ${returned}`;
}

/**
 * @param text the schema in SDL
 * @returns the findings, each with its line
 */
export function checkGraphqlRules(text: string): string[] {
  const schema = buildSchema(text);
  const lines = text.split("\n");
  const messages = new Linter().verify(
    text,
    [
      {
        files: ["**/*.graphql"],
        languageOptions: { parser: parser(schema) },
        plugins: { "@graphql-eslint": { rules: rules as unknown as ESLint.Plugin["rules"] & {} } },
        rules: { ...recommended.rules, ...relay.rules, ...decided(schema) },
      },
    ],
    { filename: "schema.graphql" },
  );
  const unused = new Set(waivers);
  const faults = messages.flatMap(({ ruleId, line, message }) => {
    const rule = ruleId?.replace("@graphql-eslint/", "") ?? "";
    const what = rule === "relay-arguments" ? returnedAt(lines, line) : message.replace(/\n[\s\S]*/, "");
    const place = `${placeOf(lines, line)}: ${what}`;
    const waiver = waivers.find((one) => one.rule === rule && one.found.test(place));
    if (waiver) unused.delete(waiver);
    return waiver ? [] : [`schema.graphql:${line}: ${place} (${rule})`];
  });
  return [
    ...faults,
    ...Array.from(
      unused,
      ({ rule, found }) => `Remove the waiver ${String(found)} of ${rule}: it has no effect.`,
    ),
  ];
}
