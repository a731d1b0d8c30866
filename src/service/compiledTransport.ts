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

/** The functions of `createApp` that find, answer and tag compiled queries. */
export function compiledTransport({
  schema,
  withPgClient,
  positions,
  entityTags,
}: CompiledTransportDeps): Pick<AppDeps, "findCompiled" | "answerCompiled" | "tagOf"> {
  return {
    findCompiled: (request) => {
      const state = requestState(request);
      if (state.compiled !== undefined) return state.compiled !== null;
      state.compiled = null;
      const { userId, secondFactorWithholds } = state.claims ?? anonymous;
      // The regular plan reports fields that are withheld.
      if (secondFactorWithholds || state.takesEvents === "only" || state.isOfWebSocket) return false;
      const found = findCompiled(schema, request.body as GraphQLRequest, userId !== null);
      if (!found) return false;
      state.compiled = found;
      state.operationType = "query";
      state.operationName = found.operationName;
      state.context.operation = found.label;
      return true;
    },
    answerCompiled: async (request, work) => {
      const state = requestState(request);
      const { compiled: found, claims } = state;
      if (!found || claims?.secondFactorWithholds) return undefined;
      state.context.role = claims?.userId == null ? "plat_anonymous" : "plat_user";
      const { variables } = request.body as GraphQLRequest;
      const attributes = { "graphql.operation.type": "query", "graphql.operation.name": found.label };
      const answer = await inSpan({ name: "query", attributes }, () =>
        compiledAnswer(found, variables ?? {}, settingsOf(request), work, withPgClient, positions),
      );
      // The token may have been looked up again and have fewer rights.
      return state.claims?.secondFactorWithholds ? undefined : answer;
    },
    tagOf: async (request) => {
      const { compiled: found, claims, tokenFacts: facts } = requestState(request);
      if (!found) return undefined;
      const { query, operationName, variables } = request.body as GraphQLRequest;
      const language = acceptedLanguage(request.headers["accept-language"]);
      return entityTags.find(found, {
        query,
        operationName,
        variables,
        claims: (claims ?? anonymous) as Claims,
        facts,
        language,
      });
    },
  };
}
