import type { IncomingMessage } from "node:http";
import type { TokenCheck, TokenFacts } from "../database/tokenCheck.ts";
import type { CodedError } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import type { ConstraintMessages } from "../database/constraintMessages.ts";
import type { HeldTransaction, OperationWork } from "../admission/operationWork.ts";
import type { Language } from "../messages/catalogue.ts";
import type { WorkContext } from "../base/workContext.ts";

/** Who is asking, as far as the transport needs to know; the token decides, `userId` null is an anonymous viewer. */
export interface Claims {
  readonly userId: string | null;
  /** Whether the token only reads; not where omitted. */
  readonly readOnly?: boolean;
  /** Whether organizations of the viewer refuse them because they have no second factor. */
  readonly secondFactorWithholds?: "SOME" | "ALL";
}

/** One answer of a subscription. */
export interface SubscriptionResult {
  data?: Record<string, unknown> | null;
  errors?: readonly { message: string; extensions?: Record<string, unknown> }[];
  extensions?: object;
}

/** What the middlewares learn about one request on its way, for its answer, its log line and the GraphQL layer. */
export interface RequestState {
  readonly id: string;
  readonly log: Logger;
  /** What is done for the request runs in it. */
  readonly context: WorkContext;
  /** Nanoseconds of the monotonic clock. */
  readonly startedAt: bigint;
  readonly constraintMessages: ConstraintMessages;
  /** Whether this viewer may introspect. */
  schemaIsOpen: boolean;
  claims: Claims | undefined;
  /** Of a token that is checked along with the statements of a query. */
  tokenCheck: TokenCheck | undefined;
  /** What the token is looked up by. */
  tokenFacts: TokenFacts | undefined;
  operationName: string | undefined;
  /** Whether the document was asked for by the id that it is registered under. */
  isRegistered: boolean;
  operationType: string | undefined;
  /** Of the body, decompressed; 0 until it is read. Where it has files, as many as the part `operations` can have. */
  bodyBytes: number;
  /** What the operation takes, since it was let in. */
  work: OperationWork | undefined;
  readonly errorCodes: Set<string>;
  /** Checksums of the files that the request has sent; see Files.release. */
  readonly sentFiles: string[];
  /** Whether the rest of the body is read although the request is refused. */
  isDrained: boolean;
  /** How the transaction of the operation ends, where not as each; see src/database/heldRun.ts. */
  held?: ((work: OperationWork) => HeldTransaction) | undefined;
  /** The language of what the answer says, found once, when it is first asked for. */
  language: (() => Language | Promise<Language>) | undefined;
  /** Whether the caller takes server-sent events, and nothing but them. */
  takesEvents: "no" | "also" | "only";
  /** What a subscription answers, once it is open; and why it ended by itself. */
  subscription: AsyncIterableIterator<SubscriptionResult> | undefined;
  subscriptionError: CodedError | undefined;
  /** The operation, once it is being carried out, which goes on when its caller has gone. */
  running: Promise<unknown> | undefined;
}

const states = new WeakMap<IncomingMessage, RequestState>();

/** Attaches the state; done once, by the first middleware. */
export function beginRequest(request: IncomingMessage, state: RequestState): void {
  states.set(request, state);
}

/**
 * The state of a request that came through this application.
 * @throws when the request did not, which is a mistake in the assembly
 */
export function requestState(request: IncomingMessage): RequestState {
  const state = states.get(request);
  if (!state) throw new Error("The request id middleware has to come first.");
  return state;
}

/** The claims that authentication has set; undefined before it, or when the request did not pass through it. */
export function claimsOf(request: IncomingMessage): Claims | undefined {
  return states.get(request)?.claims;
}

/** Like `requestState`, undefined for an operation that did not come over HTTP. */
export function findRequestState(request: IncomingMessage | undefined): RequestState | undefined {
  return request && states.get(request);
}
