import type { ServerResponse } from "node:http";
import { GraphQLError, isEnumType, Kind, type ExecutionArgs, type GraphQLSchema } from "postgraphile/graphql";
import { CodedError, internalError, isErrorCode } from "../base/errors.ts";
import { queryLimits } from "../admission/queryLimits.ts";
import { inputMember } from "./inputMember.ts";
import { literalPath } from "./literalPath.ts";
import type { RequestState } from "./requestState.ts";
import { retryAfter } from "./retryAfter.ts";
import { failureForLog, toCodedError, viewerOf } from "./toCodedError.ts";
import { withReason } from "./secondFactorErrors.ts";

const noMessages = new Map<string, never>();

function answer(
  error: CodedError,
  from: GraphQLError | undefined,
  state: RequestState | undefined,
): GraphQLError {
  state?.errorCodes.add(error.code);
  const failure = failureForLog(error);
  if (failure)
    state?.log.error({ event: "graphql.failed", ...failure, path: from?.path }, "The operation failed.");
  return new GraphQLError(error.message, {
    nodes: from?.nodes,
    source: from?.source,
    positions: from?.positions,
    path: from?.path,
    extensions: { ...error.extensions, code: error.code, requestId: state?.id },
  });
}

/** An error that already has one of our codes in its extensions, such as those of the limits. */
function alreadyCoded(error: GraphQLError): CodedError | undefined {
  const { code, ...extensions } = error.extensions;
  return isErrorCode(code) ? new CodedError(code, error.message, extensions) : undefined;
}

/**
 * A validation message for viewers who may not read the schema: without suggestions, and without names of types and
 * fields that are not in the document.
 * @param written the document
 */
export function withoutNames(message: string, written: string): string {
  const shortened = message.replace(/ Did you mean [\s\S]*$/, "");
  if (!shortened.includes('"')) return shortened;
  const words = new Set(written.match(/\w+/g));
  return shortened.replace(/"([^"]*)"/g, (quoted, text: string) => {
    const names = text.match(/[A-Za-z_]\w*/g) ?? [];
    if (names.every((name) => words.has(name))) return quoted;
    // Keeps the parts of `Query.leads` that the client wrote.
    const known = names.filter((name) => words.has(name));
    return `"${known.at(-1) ?? "…"}"`;
  });
}

const badInput = (message: string, field?: string) =>
  new CodedError("BAD_USER_INPUT", message, field === undefined ? {} : { field });

const enumNamed = /\bdoes not exist in "(\w+)" enum\.|\bEnum "(\w+)" cannot represent /;

/** Adds the valid values to the refusal of an enumeration value. */
function withAllowedValues(error: CodedError, schema: GraphQLSchema | undefined): CodedError {
  const [, missing, otherKind] = enumNamed.exec(error.message) ?? [];
  const type = schema?.getType(missing ?? otherKind ?? "");
  if (!isEnumType(type)) return error;
  const allowed = type
    .getValues()
    .filter(({ extensions }) => !extensions.notAvailable)
    .map(({ name }) => name);
  const message = error.message.replace(/ Did you mean [\s\S]*$/, "");
  return new CodedError(
    error.code,
    `${message} Use one of ${allowed.join(", ")}.`,
    { ...error.extensions, allowed },
    { cause: error.cause },
  );
}

/** graphql-js aborts the comparison of fields with the same name if there are too many; the document may be valid. */
const ABORTED = "Validation aborted.";
const tooManyAlike = () =>
  new CodedError("LIMIT_EXCEEDED", "The operation selects the same fields too many times.", {
    limit: queryLimits.selections,
  });

/** The schema, for viewers who may read it. */
const openSchema = (state: RequestState | undefined, schema: GraphQLSchema | undefined) =>
  !state || state.schemaIsOpen ? schema : undefined;

/** Adds a code to an error of parsing or validation. An error without a location in the document is internal. */
export function validationError(
  error: GraphQLError,
  state: RequestState | undefined,
  schema?: GraphQLSchema,
): GraphQLError {
  if (!(error instanceof GraphQLError)) return answer(internalError(error), undefined, state);
  const coded = alreadyCoded(error);
  if (coded?.code === "BAD_USER_INPUT" && coded.extensions.field === undefined)
    return answer(badInput(coded.message, literalField(error)), error, state);
  if (coded) return answer(coded, error, state);
  if (error.message === ABORTED) return answer(tooManyAlike(), undefined, state);
  const isAbout = error.locations?.length || /^Too many validation errors/.test(error.message);
  if (!isAbout) return answer(internalError(error), error, state);
  const refused = badInput(error.message, literalField(error));
  return answer(withAllowedValues(refused, openSchema(state, schema)), error, state);
}

const missingArgument = /^(?:Field|Directive) "@?\w+" argument "(\w+)" of type/;
const member = /^Field "(?:\w+\.)?(\w+)" (?:of required type|is not defined by type)/;

/** The argument or input field that a validation error is about, without the outer `input` of mutations. */
function literalField(error: GraphQLError): string | undefined {
  const path = literalPath(error) ?? missingArgument.exec(error.message)?.[1];
  const missing = / of required type /.test(error.message) ? member.exec(error.message)?.[1] : undefined;
  return (
    [path, missing]
      .filter(Boolean)
      .join(".")
      .replace(/^input\./, "") || undefined
  );
}

const variableMissing = /^Variable "\$(\w+)" of (?:required|non-null) type/;
const variableAt = /^Variable "\$(\w+)" got invalid value [\s\S]* at "(\1[.[][^"]*)"; ([\s\S]*)$/;
const variableWhole = /^Variable "\$(\w+)" got invalid value [\s\S]*; ([\s\S]*)$/;

/**
 * graphql-js repeats the entire invalid value, which may contain a password if it is an object; the client gets its
 * path instead. The patterns are greedy, so that no part of the value remains. `field` is the path inside the
 * variable, or the variable itself.
 */
function coercionError(message: string): CodedError | undefined {
  const missing = variableMissing.exec(message);
  if (missing) return badInput(message, missing[1]);
  const [, , at, reasonThere] = variableAt.exec(message) ?? [];
  const [, variable, reasonWhole] = variableWhole.exec(message) ?? [];
  const reason = reasonThere ?? reasonWhole;
  if (variable === undefined || reason === undefined) return undefined;
  const inside = at?.slice(variable.length).replace(/^\./, "");
  const field = [inside, member.exec(reason)?.[1]].filter(Boolean).join(".") || variable;
  return badInput(`Variable "$${at ?? variable}" has an invalid value: ${reason}`, field);
}

const operationChoice = /^(Must provide an operation|Must provide operation name|Unknown operation named)/;

/**
 * Adds a code to an error thrown by execution or the context function. A GraphQLError that nobody threw deliberately,
 * such as for null in a non-null field, is internal.
 */
export function executionError(
  error: unknown,
  state: RequestState | undefined,
  response?: ServerResponse,
  args?: ExecutionArgs,
): GraphQLError {
  const from = error instanceof GraphQLError ? error : undefined;
  let coded: CodedError | undefined;
  // First, since the scalar that refuses a value knows its code but not its path.
  if (from && !from.path && from.nodes?.[0]?.kind === Kind.VARIABLE_DEFINITION)
    coded = coercionError(
      !state || state.schemaIsOpen ? from.message : withoutNames(from.message, from.source?.body ?? ""),
    );
  coded &&= withAllowedValues(coded, openSchema(state, args?.schema));
  coded ??= from && alreadyCoded(from);
  if (!coded && from && !from.path && operationChoice.test(from.message))
    coded = badInput(from.message, "operationName");
  coded ??= toCodedError(error, state?.constraintMessages ?? noMessages, viewerOf(state?.claims));
  if (coded.code === "BAD_USER_INPUT" && coded.extensions.field === undefined && args) {
    const field = inputMember(coded.cause, from, args);
    if (field) coded = new CodedError(coded.code, coded.message, { ...coded.extensions, field }, coded);
  }
  coded = withReason(coded, state?.claims);
  if (response) retryAfter(response, coded);
  return answer(coded, from, state);
}
