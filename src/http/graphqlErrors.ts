import type { ServerResponse } from "node:http";
import { GraphQLError, Kind } from "postgraphile/graphql";
import { CodedError, type ErrorCode, internalError, isErrorCode } from "../errors.ts";
import { literalPath } from "./literalPath.ts";
import type { RequestState } from "./requestState.ts";
import { retryAfter } from "./retryAfter.ts";
import { describeForLog, toCodedError } from "./toCodedError.ts";

const noMessages = new Map<string, never>();

function answer(
  error: CodedError,
  from: GraphQLError | undefined,
  state: RequestState | undefined,
): GraphQLError {
  state?.errorCodes.add(error.code);
  if (error.code === "INTERNAL") {
    const failure = describeForLog(error.cause ?? error);
    state?.log.error({ err: failure, path: from?.path }, "operation failed");
  }
  return new GraphQLError(error.message, {
    nodes: from?.nodes,
    source: from?.source,
    positions: from?.positions,
    path: from?.path,
    extensions: { ...error.extensions, code: error.code, requestId: state?.id },
  });
}

/** An error that already carries a code of ours in its extensions, as the limits' do. */
function alreadyCoded(error: GraphQLError): CodedError | undefined {
  const { code, ...extensions } = error.extensions;
  return isErrorCode(code) ? new CodedError(code, error.message, extensions) : undefined;
}

const badInput = (message: string, field?: string, code: ErrorCode = "BAD_USER_INPUT") =>
  new CodedError(code, message, field === undefined ? {} : { field });

/** Codes an error of parsing or validation. Anything that points at no place in the document is a failure of ours. */
export function validationError(error: GraphQLError, state: RequestState | undefined): GraphQLError {
  const coded = error instanceof GraphQLError ? alreadyCoded(error) : undefined;
  if (coded) return answer(coded, error, state);
  const isOurs = !(error instanceof GraphQLError) || !error.locations?.length;
  if (isOurs && !/^Too many validation errors/.test(error.message))
    return answer(internalError(error), error, state);
  return answer(badInput(error.message, literalPath(error)), error, state);
}

const coercion = /^Variable "\$(\w+)" got invalid value [\s\S]*?(?: at "([^"]+)")?; ([\s\S]*)$/;
const member = /^Field "(\w+)" (?:of required type|is not defined by type)/;

/**
 * graphql-js repeats the whole bad value, which for an object may hold a password; the caller is told the place instead.
 * The field is the path inside the variable, or the variable itself.
 */
function coercionError(message: string): CodedError | undefined {
  const match = coercion.exec(message);
  const missing = /^Variable "\$(\w+)" of (?:required|non-null) type/.exec(message);
  if (missing) return badInput(message, missing[1]);
  if (!match) return undefined;
  const [, variable = "", at, reason = ""] = match;
  const inside = at?.slice(at.search(/[.[]/)).replace(/^\./, "");
  const field = [inside, member.exec(reason)?.[1]].filter(Boolean).join(".") || variable;
  return badInput(`Variable "$${at ?? variable}" has an invalid value: ${reason}`, field);
}

const operationChoice = /^(Must provide an operation|Must provide operation name|Unknown operation named)/;

/**
 * Codes what execution, or the context function before it, has thrown. A GraphQLError that nobody threw on purpose, such
 * as a null in a place that has none, is a failure of ours.
 */
export function executionError(
  error: unknown,
  state: RequestState | undefined,
  response?: ServerResponse,
): GraphQLError {
  const from = error instanceof GraphQLError ? error : undefined;
  let coded = from && alreadyCoded(from);
  if (!coded && from && !from.path) {
    if (from.nodes?.[0]?.kind === Kind.VARIABLE_DEFINITION) coded = coercionError(from.message);
    else if (operationChoice.test(from.message)) coded = badInput(from.message, "operationName");
  }
  coded ??= toCodedError(error, state?.constraintMessages ?? noMessages, Boolean(state?.claims?.userId));
  if (response) retryAfter(response, coded);
  return answer(coded, from, state);
}
