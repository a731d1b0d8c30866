import type { execute } from "postgraphile/grafast";
import { type ASTVisitor, GraphQLError, type ValidationContext } from "postgraphile/graphql";
import { limitExceeded, measureDocument } from "../limits/measureDocument.ts";
import { operationCost } from "../limits/operationCost.ts";
import { type QueryLimit, queryLimits } from "../limits/queryLimits.ts";
import { scanTokens } from "../limits/scanTokens.ts";

const sentences: Record<QueryLimit, (found: number | undefined) => string> = {
  tokens: () => `An operation may have ${queryLimits.tokens} tokens at most.`,
  nesting: () => `Braces may be nested ${queryLimits.nesting} levels deep at most.`,
  characters: () =>
    `The document may have ${queryLimits.characters} characters at most. Send large values as variables.`,
  depth: (found) => `An operation may be ${queryLimits.depth} levels deep at most; this one has ${found}.`,
  introspectionDepth: (found) =>
    `Introspection may be ${queryLimits.introspectionDepth} levels deep at most; this one has ${found}.`,
  aliases: (found) => `An operation may have ${queryLimits.aliases} aliases at most; this one has ${found}.`,
  directives: (found) =>
    `An operation may have ${queryLimits.directives} directives at most; this one has ${found}.`,
  selections: (found) =>
    `An operation may select ${queryLimits.selections} fields at most, fragments expanded; this one has ${found}.`,
  cost: (found) =>
    `An operation may ask for ${queryLimits.cost} objects at most; this one could return ${found}. Ask for fewer with first.`,
};

function exceeded(limit: QueryLimit, found?: number): GraphQLError {
  const measured = found === undefined ? {} : { [limit]: found };
  return new GraphQLError(sentences[limit](found), {
    extensions: { code: "LIMIT_EXCEEDED", limit: queryLimits[limit], ...measured },
  });
}

/**
 * Throws rather than reports, and while it is constructed: the other rules, some of which take time that grows with
 * the square of the document, then never see it.
 */
function QueryLimitsRule(context: ValidationContext): ASTVisitor {
  const measure = measureDocument(context.getDocument());
  const limit = limitExceeded(measure);
  if (limit) throw exceeded(limit, measure[limit]);
  return {};
}

/**
 * Bounds what one operation can make the server do, before anything is planned: the planner expands fragments, so a
 * document of 940 bytes could otherwise occupy it for minutes. Tells the cost in `extensions.cost` of each answer.
 */
export const QueryLimitsPlugin: GraphileConfig.Plugin = {
  name: "QueryLimitsPlugin",
  description:
    "Refuses operations over the limits on tokens, depth, aliases, directives, selections and cost",
  grafserv: {
    middleware: {
      setPreset(next, event) {
        event.validationRules = [QueryLimitsRule, ...event.validationRules];
        const inner = event.getExecutionConfig;
        event.getExecutionConfig = async function (requestContext) {
          const config = await inner.call(this, requestContext);
          return {
            ...config,
            parseAndValidate(query) {
              const limit = scanTokens(query);
              if (limit) return { errors: [exceeded(limit)] };
              try {
                return config.parseAndValidate(query);
              } catch (error) {
                if (error instanceof GraphQLError) return { errors: [error] };
                throw error;
              }
            },
            execute: (async (args: Parameters<typeof execute>[0]) => {
              const { schema, document, operationName, variableValues } = args;
              const requested = operationCost(schema, document, operationName, variableValues ?? {});
              if (requested > queryLimits.cost) return { errors: [exceeded("cost", requested)] };
              const result = await config.execute(args);
              if (Symbol.asyncIterator in result) return result;
              const cost = { requested, limit: queryLimits.cost };
              return { ...result, extensions: { ...result.extensions, cost } };
            }) as typeof config.execute,
          };
        };
        return next();
      },
    },
  },
};
