import type { IncomingMessage } from "node:http";
import type { TokenCheck, TokenFacts } from "../database/tokenCheck.ts";
import type { CodedError } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import type { ConstraintMessages } from "../database/constraintMessages.ts";
import type { HeldTransaction, OperationWork, StatementTrace } from "../admission/operationWork.ts";
import type { Language } from "../messages/catalogue.ts";
import type { WorkContext } from "../base/workContext.ts";
import type { CompiledQuery } from "../compiled/compiledQueries.ts";

/** The properties of the viewer that the transport needs. `userId` is null for a visitor. */
export interface Claims {
  readonly userId: string | null;
  /** Whether the token is read-only. Default: false. */
  readonly readOnly?: boolean;
  /** Whether organizations refuse the viewer because there is no second factor. */
  readonly secondFactorWithholds?: "SOME" | "ALL";
}

/** One result of a subscription. */
export interface SubscriptionResult {
  data?: Record<string, unknown> | null;
  errors?: readonly { message: string; extensions?: Record<string, unknown> }[];
  extensions?: object;
}

/** State of a request, for its response, its log line and the GraphQL layer. */
export interface RequestState {
  readonly id: string;
  readonly log: Logger;
  /** Work context of the request. */
  readonly context: WorkContext;
  /** Nanoseconds of the monotonic clock. */
  readonly startedAt: bigint;
  readonly constraintMessages: ConstraintMessages;
  /** Whether this viewer may introspect. */
  schemaIsOpen: boolean;
  claims: Claims | undefined;
  /** Token that is verified together with the statements of a query. */
  tokenCheck: TokenCheck | undefined;
  /** Key to look the token up. */
  tokenFacts: TokenFacts | undefined;
  operationName: string | undefined;
  /** Whether the document was requested by its registered id. */
  isRegistered: boolean;
  operationType: string | undefined;
  /** Size of the decompressed body; 0 until it is read. With files, the limit of the part `operations`. */
  bodyBytes: number;
  /** The compiled form of the query; null if there is none, undefined before it was looked for. */
  compiled?: CompiledQuery | null | undefined;
  /** Resources of the operation since its admission. */
  work: OperationWork | undefined;
  readonly errorCodes: Set<string>;
  /** Checksums of the uploaded files; see Files.release. */
  readonly sentFiles: string[];
  /** Whether the rest of the body is read although the request is refused. */
  isDrained: boolean;
  /**
   * Creates the transaction of the operation if its statements are not committed one by one; see
   * src/database/operationTransaction.ts.
   */
  held?: ((work: OperationWork) => HeldTransaction) | undefined;
  /** Receives the statements of the operation, if the viewer may read them. */
  trace?: StatementTrace | undefined;
  /** Language of messages, determined on first use. */
  language: (() => Language | Promise<Language>) | undefined;
  /** Whether the client accepts only server-sent events. */
  takesEvents: "no" | "also" | "only";
  /** Whether the request is a message of a WebSocket, which takes subscriptions only. */
  readonly isOfWebSocket: boolean;
  /** Results of a subscription once it is open, and the reason if the service ended it. */
  subscription: AsyncIterableIterator<SubscriptionResult> | undefined;
  subscriptionError: CodedError | undefined;
  /** The operation once it is being executed, which continues if its client disconnects. */
  running: Promise<unknown> | undefined;
  /** Why the short path could not answer, if the request is to be refused; see shortPath.ts. */
  failure?: { readonly error: unknown } | undefined;
}

const stateKey = Symbol("request state");

/** PERF: a member of the request, since a WeakMap takes longer, also of the garbage collector. */
type Begun = IncomingMessage & { [stateKey]?: RequestState };

/** Attaches the state; called once, when the request begins. */
export function beginRequest(request: IncomingMessage, state: RequestState): void {
  (request as Begun)[stateKey] = state;
}

/**
 * State of a request that passed through this application.
 * @throws if it did not, which is a bug in the assembly
 */
export function requestState(request: IncomingMessage): RequestState {
  const state = (request as Begun)[stateKey];
  if (!state) throw new Error("The request id middleware has to come first.");
  return state;
}

/** Claims set by authentication; undefined before it, or if the request did not pass through it. */
export function claimsOf(request: IncomingMessage): Claims | undefined {
  return (request as Begun)[stateKey]?.claims;
}

/** Like `requestState`, but undefined for an operation that did not come over HTTP. */
export function findRequestState(request: IncomingMessage | undefined): RequestState | undefined {
  return (request as Begun | undefined)?.[stateKey];
}
