import type { execute } from "postgraphile/grafast";
import { getOperationAST, GraphQLError, type GraphQLFormattedError } from "postgraphile/graphql";
import { CodedError, internalMessage, isErrorCode } from "../../base/errors.ts";
import { secondFactorErrors } from "../secondFactorErrors.ts";
import { executionError, validationError } from "../graphqlErrors.ts";
import { findRequestState, type RequestState, type SubscriptionResult } from "../requestState.ts";
import { inSpan } from "../../tracing/spans.ts";
import { operationLabel } from "../../operations/operationLabel.ts";

/**
 * Fallback: masks errors without one of our codes in grafserv's own masking step. The request is not known here; its id
 * is added when the response is written.
 */
export function maskError(error: GraphQLError): GraphQLError | GraphQLFormattedError {
  if (isErrorCode(error.extensions?.code)) return error;
  return new GraphQLError(internalMessage, {
    path: error.path,
    nodes: error.nodes,
    extensions: { code: "INTERNAL" },
  });
}

const notAsEvents = () =>
  new CodedError(
    "BAD_USER_INPUT",
    "Subscriptions are sent as server-sent events: send the header Accept with text/event-stream.",
  );

const notASubscription = () =>
  new CodedError(
    "BAD_USER_INPUT",
    "A WebSocket accepts subscriptions only: send queries and mutations as POST requests.",
  );

/** Results of a subscription with coded errors, like those of other operations. */
async function* codedResults(
  results: AsyncIterable<SubscriptionResult>,
  state: RequestState,
  args: Parameters<typeof execute>[0],
): AsyncGenerator<SubscriptionResult, undefined> {
  for await (const { data, errors } of results)
    yield {
      ...(data !== undefined && { data }),
      ...(errors?.length && { errors: errors.map((error) => executionError(error, state, undefined, args)) }),
    };
}

/** Errors of the context function, by the arguments that it was to complete. */
const failures = new WeakMap<object, GraphQLError>();

/**
 * Adds code and request id to every error of an operation and masks internal ones. grafserv's `maskError` has no
 * access to the request, so this wraps parsing, validation, the context function and execution.
 */
export const CodedErrorsPlugin: GraphileConfig.Plugin = {
  name: "CodedErrorsPlugin",
  description: "Coded, masked errors with the request id",
  after: ["QueryLimitsPlugin", "SchemaPrivacyPlugin"],
  grafserv: {
    middleware: {
      setPreset: {
        after: ["QueryLimitsPlugin", "SchemaPrivacyPlugin"],
        callback(next, event) {
          const inner = event.getExecutionConfig;
          event.getExecutionConfig = async function (requestContext) {
            const state = findRequestState(requestContext.expressv4?.req);
            const config = await inner.call(this, requestContext);
            return {
              ...config,
              parseAndValidate(query) {
                const result = config.parseAndValidate(query);
                if (!result.errors) return result;
                return { errors: result.errors.map((error) => validationError(error, state, config.schema)) };
              },
              execute: (async (args: Parameters<typeof execute>[0]) => {
                const failure = failures.get(args);
                if (failure) return { errors: [failure] };
                const operation = getOperationAST(args.document, args.operationName);
                if (state) {
                  state.operationName = operation?.name?.value;
                  state.operationType = operation?.operation;
                  state.context.operation = operation ? operationLabel(operation) : undefined;
                  state.context.role = state.claims?.userId == null ? "plat_anonymous" : "plat_user";
                }
                if (state?.isOfWebSocket && operation && operation.operation !== "subscription")
                  return { errors: [executionError(notASubscription(), state)] };
                if (operation?.operation === "subscription" && (!state || state.takesEvents === "no"))
                  return { errors: [executionError(notAsEvents(), state)] };
                const result = await inSpan(
                  {
                    name: operation?.operation ?? "operation",
                    attributes: {
                      "graphql.operation.type": operation?.operation,
                      "graphql.operation.name": state?.context.operation,
                    },
                  },
                  async () => config.execute(args),
                );
                if (Symbol.asyncIterator in result) {
                  // Written by the application; grafserv would write multipart.
                  if (state)
                    state.subscription = codedResults(
                      result as AsyncIterable<SubscriptionResult>,
                      state,
                      args,
                    );
                  return { data: null };
                }
                const errors = [...(result.errors ?? [])];
                if (operation?.operation === "query" && result.data) {
                  const refused = new Set(errors.map(({ path }) => path?.[0]));
                  const { selectionSet } = operation;
                  errors.push(
                    ...secondFactorErrors(result.data, refused, args.document, selectionSet, state?.claims),
                  );
                }
                if (errors.length === 0) return result;
                const response = requestContext.expressv4?.res;
                return {
                  ...result,
                  errors: errors.map((error) => executionError(error, state, response, args)),
                };
              }) as typeof config.execute,
            };
          };
          return next();
        },
      },
    },
  },
  grafast: {
    middleware: {
      // The preset's context function runs in here; its errors would otherwise not be masked.
      async prepareArgs(next, event) {
        try {
          const { document, operationName, requestContext } = event.args;
          // A mutation with effects outside the database is not executed if the token has expired.
          if (getOperationAST(document, operationName)?.operation !== "query")
            await findRequestState(requestContext?.expressv4?.req)?.tokenCheck?.complete();
          return await next();
        } catch (error) {
          const { expressv4 } = event.args.requestContext ?? {};
          const state = findRequestState(expressv4?.req);
          const coded = executionError(error, state, expressv4?.res);
          // A rejection would reach a handler that prints the error and only keeps its message, so it is returned as
          // a result.
          failures.set(event.args, coded);
          return event.args;
        }
      },
    },
  },
};
