/** Answers compiled queries over HTTP, with their entity tags. */
import type { GraphQLSchema } from "postgraphile/graphql";
import { answerCompiled as compiledAnswer } from "../compiled/answerCompiled.ts";
import type { EntityTags } from "../compiled/entityTags.ts";
import { anonymous, type Claims } from "../database/claims.ts";
import type { Positions } from "../database/position.ts";
import type { AppDeps } from "../http/app.ts";
import type { GraphQLRequest } from "../http/graphqlRequest.ts";
import { findCompiled } from "../http/plugins/QueryLimitsPlugin.ts";
import { requestState } from "../http/requestState.ts";
import { acceptedLanguage } from "../messages/language.ts";
import { inSpan } from "../tracing/spans.ts";
import { settingsOf } from "./graphqlPreset.ts";

export interface CompiledTransportDeps {
  schema: GraphQLSchema;
  withPgClient: Parameters<typeof compiledAnswer>[4];
  positions: Positions;
  entityTags: EntityTags;
}

export function compiledTransport({
  schema,
  withPgClient,
  positions,
  entityTags,
}: CompiledTransportDeps): Pick<AppDeps, "answerCompiled" | "tagOf"> {
  return {
    answerCompiled: async (request, work) => {
      const state = requestState(request);
      const { query, operationName, variables } = request.body as GraphQLRequest;
      const { userId, secondFactorWithholds } = state.claims ?? anonymous;
      // The regular plan reports fields that are withheld.
      if (secondFactorWithholds) return undefined;
      const found = findCompiled(schema, { query, operationName, variables }, userId !== null);
      if (!found) return undefined;
      state.operationType = "query";
      state.operationName = found.operationName;
      state.context.operation = found.label;
      state.context.role = userId === null ? "plat_anonymous" : "plat_user";
      const attributes = { "graphql.operation.type": "query", "graphql.operation.name": found.label };
      const answer = await inSpan({ name: "query", attributes }, () =>
        compiledAnswer(found, variables ?? {}, settingsOf(request), work, withPgClient, positions),
      );
      // The token may have been looked up again and have fewer rights.
      return state.claims?.secondFactorWithholds ? undefined : answer;
    },
    tagOf: async (request) => {
      const state = requestState(request);
      const { query, operationName, variables } = request.body as GraphQLRequest;
      const claims = (state.claims ?? anonymous) as Claims;
      if (claims.secondFactorWithholds || state.takesEvents === "only" || state.isOfWebSocket)
        return undefined;
      const found = findCompiled(schema, { query, operationName, variables }, claims.userId !== null);
      if (!found) return undefined;
      state.operationType = "query";
      state.operationName = found.operationName;
      state.context.operation = found.label;
      const language = acceptedLanguage(request.headers["accept-language"]);
      const facts = state.tokenFacts;
      return entityTags.find(found, { query, operationName, variables, claims, facts, language });
    },
  };
}
