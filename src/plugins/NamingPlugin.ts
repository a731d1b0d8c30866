/**
 * Gives fields and types the names of the contract where the stock inflection says otherwise: a plain `id`, input
 * types that end in Input once, `leads` beside `leadsConnection`.
 */
import type {} from "postgraphile";

export const NamingPlugin: GraphileConfig.Plugin = {
  name: "NamingPlugin",
  version: "1.0.0",
  inflection: {
    replace: {
      // Stock: "row_id", to leave `id` to the Node interface, which this API does not have.
      _attributeName(_previous, _options, { attributeName, codec }) {
        const attribute = codec.attributes[attributeName]!;
        return this.coerceToGraphQLName((attribute.extensions?.tags?.name as string) || attributeName);
      },
      // app_public.agent_input is the input type AgentInput, not AgentInputInput.
      inputType(previous, _options, typeName) {
        return typeName.endsWith("Input") ? typeName : previous!(typeName);
      },
      builtin(previous, _options, text) {
        if (text === "Datetime") return "DateTime";
        if (text === "BigFloat") return "Decimal";
        return previous!(text);
      },
      // Enumeration values are upper case in the database already.
      enumValue(_previous, _options, value) {
        return value;
      },
    },
  },
};
