import { type DocumentNode, GraphQLError } from "postgraphile/graphql";
import { withoutNames } from "../graphqlErrors.ts";
import { findRequestState } from "../requestState.ts";
import { introspectionsIn } from "../../limits/planningSteps.ts";

const known = new WeakMap<DocumentNode, boolean>();

/** Whether a document queries the schema; memoized, since documents are cached. */
function asksForSchema(document: DocumentNode): boolean {
  let found = known.get(document);
  if (found !== undefined) return found;
  found = document.definitions.some(
    (definition) => "selectionSet" in definition && introspectionsIn(definition.selectionSet) > 0,
  );
  known.set(document, found);
  return found;
}

const refusal = () =>
  new GraphQLError("Introspection is open to signed-in viewers only. Send a token.", {
    extensions: { code: "UNAUTHENTICATED" },
  });

const guarded = (error: GraphQLError, document: string) =>
  new GraphQLError(withoutNames(error.message, document), error);

/**
 * Restricts the schema to signed-in viewers in production: no introspection, and no names of types or fields in
 * validation messages that the client did not write. It processes the result of validation, which is cached across
 * viewers, and is therefore not a validation rule.
 */
export const SchemaPrivacyPlugin: GraphileConfig.Plugin = {
  name: "SchemaPrivacyPlugin",
  description: "Introspection for signed-in viewers, and for everybody outside production",
  grafserv: {
    middleware: {
      setPreset(next, event) {
        const inner = event.getExecutionConfig;
        event.getExecutionConfig = async function (requestContext) {
          const config = await inner.call(this, requestContext);
          const state = findRequestState(requestContext.expressv4?.req);
          if (!state || state.schemaIsOpen) return config;
          return {
            ...config,
            parseAndValidate(query) {
              const result = config.parseAndValidate(query);
              if (result.errors)
                return { errors: result.errors.map((error) => guarded(error, String(query))) };
              return asksForSchema(result.document) ? { errors: [refusal()] } : result;
            },
          };
        };
        return next();
      },
    },
  },
};
