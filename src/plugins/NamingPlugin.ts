/**
 * Names of fields and types where the contract differs from the stock inflection: a plain `id`, input types that end
 * in Input once, `leads` beside `leadsConnection`.
 */
/// <reference types="postgraphile" />
import { tagTexts } from "../schema/codecNames.ts";

/** Names of composite types, determined by tableType, which is called first. */
const composites = new Set<string>();

// PERF: names are requested again for each field, and computed word by word with a dictionary.
const plurals = new Map<string, string>();
const singulars = new Map<string, string>();
const graphqlNames = new Map<string, string>();
const tableTypes = new WeakMap<object, string>();

function remembered<K extends string | object>(
  known: { get(key: K): string | undefined; set(key: K, value: string): unknown },
  key: K,
  make: () => string,
): string {
  let value = known.get(key);
  if (value === undefined) known.set(key, (value = make()));
  return value;
}

export const NamingPlugin: GraphileConfig.Plugin = {
  name: "NamingPlugin",
  version: "1.0.0",
  gather: {
    hooks: {
      // Dollar-quoted comments begin with a line break; the blank line after the tags is not part of the text.
      pgIntrospection_introspection: {
        // These read tags, and the first reader has them parsed for all.
        before: [
          "PgFakeConstraintsPlugin",
          "EnumTablesPlugin",
          "PgRemoveExtensionResourcesPlugin",
          "PgAggregatesSmartTagsPlugin",
        ],
        callback(_info, { introspection }) {
          for (const description of introspection.descriptions)
            description.description = description.description?.trim().replace(/^((?:@.*\n)+)\n+/, "$1");
        },
      },
    },
  },
  inflection: {
    replace: {
      // Stock: "row_id", which reserves `id` for the Node interface.
      _attributeName(_previous, _options, { attributeName, codec }) {
        const attribute = codec.attributes[attributeName]!;
        return this.coerceToGraphQLName((attribute.extensions?.tags?.name as string) || attributeName);
      },
      pluralize: (previous, _options, text) => remembered(plurals, text, () => previous!(text)),
      singularize: (previous, _options, text) => remembered(singulars, text, () => previous!(text)),
      coerceToGraphQLName: (previous, _options, text) =>
        remembered(graphqlNames, text, () => previous!(text)),
      // A composite type has its own name (NotificationSettings); one that ends in _input has no output type.
      tableType(previous, _options, codec) {
        if (codec.extensions?.isTableLike) return remembered(tableTypes, codec, () => previous!(codec));
        const name = this.upperCamelCase(codec.name.endsWith("Input") ? `${codec.name}AsOutput` : codec.name);
        composites.add(name);
        return name;
      },
      // Address → AddressInput, agent_input → AgentInput; the stock input types of tables are never used.
      inputType(_previous, _options, typeName) {
        if (!composites.has(typeName)) return `${typeName}RowInput`;
        return typeName.endsWith("InputAsOutput")
          ? typeName.slice(0, -"AsOutput".length)
          : `${typeName}Input`;
      },
      // PostgreSQL ranges are filter arguments, given as DateRange and the like, which ListsPlugin creates.
      rangeType(previous, _options, codec) {
        return `Pg${previous!(codec)}`;
      },
      builtin(previous, _options, text) {
        if (text === "Datetime") return "DateTime";
        if (text === "BigFloat") return "Decimal";
        return previous!(text);
      },
      // `@listName offers` of a view: name of its list across the portfolio, if it differs from its type.
      allRowsList(previous, _options, resource) {
        return tagTexts(resource.extensions?.tags, "listName")[0] ?? previous!(resource);
      },
      allRowsConnection(previous, _options, resource) {
        const [name] = tagTexts(resource.extensions?.tags, "listName");
        return name === undefined ? previous!(resource) : this.connectionField(name);
      },
      // Enumeration values are already upper case in the database.
      enumValue(_previous, _options, value) {
        return value;
      },
    },
  },
};
