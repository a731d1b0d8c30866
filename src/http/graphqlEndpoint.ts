/** POST /graphql: from the parsed request to the text of the response. */
import type { IncomingMessage } from "node:http";
import type { Request, RequestHandler, Response } from "express";
import { internalMessage } from "../base/errors.ts";
import { LARGE_COST, operations, REFUSAL_HOLD_MS } from "../admission/semaphores.ts";
import { localizeErrors } from "../messages/localizeErrors.ts";
import { viewerLanguageOnce, type LanguageOfUser } from "./viewerLanguage.ts";
import { OperationWork } from "../admission/operationWork.ts";
import { isVisitor, partyOf } from "../admission/party.ts";
import { queryLimits } from "../admission/queryLimits.ts";
import { answerText } from "./answerText.ts";
import { compressed, isCompressible } from "./compression.ts";
import { endInChunks } from "./endInChunks.ts";
import { POSITION_HEADER, type Positions } from "../database/position.ts";
import { answerUnchanged, type Tag, type TagOf, setEntityTag, wantsTag } from "./conditionalRequests.ts";
import { turnOf } from "./inTurn.ts";
import type { Grafserv } from "./grafserv.ts";
import { requestState, type RequestState } from "./requestState.ts";
import { answerOnce, writeSubscription } from "./subscription.ts";

interface Answer {
  data?: Record<string, unknown> | null;
  errors?: { message: string; extensions?: Record<string, unknown> }[];
  extensions?: object;
}

/**
 * Errors that grafserv raises outside of the operation, such as while there is no schema, have neither code nor id.
 */
function completeErrors(answer: Answer, state: RequestState): void {
  for (const error of answer.errors ?? []) {
    if (error.extensions?.requestId !== undefined) continue;
    error.message = internalMessage;
    error.extensions = { code: "INTERNAL", requestId: state.id };
    state.errorCodes.add("INTERNAL");
  }
}

/** Responses above this size, actual or expected, are written in chunks. */
const LARGE_BYTES = 100_000;

/** Text of a response, replaced by a refusal if it is too long. */
async function written(answer: Answer, state: RequestState, work: OperationWork): Promise<string> {
  const isSmall = work.bytesRead < LARGE_BYTES && work.cost < LARGE_COST;
  const text = isSmall ? JSON.stringify(answer) : await answerText(answer, queryLimits.bytes);
  if (text !== undefined && text.length <= queryLimits.bytes) return text;
  const { code, message, extensions } = work.tooLarge(state.operationType === "mutation");
  state.errorCodes.add(code);
  const errors = [{ message, extensions: { ...extensions, code, requestId: state.id } }];
  return JSON.stringify({ data: null, errors, extensions: answer.extensions });
}

/**
 * Waits for admission of the operation.
 * @returns false if the client has disconnected
 */
async function admit(
  work: OperationWork,
  response: Response,
  { errorCodes }: RequestState,
): Promise<boolean> {
  const release = await turnOf(operations, work.party, response);
  if (!release) return false;
  work.holds(() => {
    const isHeld = errorCodes.has("RATE_LIMITED") || (errorCodes.size > 0 && isVisitor(work.party));
    if (isHeld) setTimeout(release, REFUSAL_HOLD_MS).unref();
    else release();
  });
  return true;
}

/**
 * Whether the response has no data because the database is unavailable: verifying the token too would take as long
 * again.
 */
function tellsNothing(result: Awaited<ReturnType<Grafserv["answerOperation"]>>): boolean {
  if (result?.type !== "json") return false;
  const { data, errors = [] } = result.json as Answer;
  return (
    errors.some(({ extensions }) => extensions?.["code"] === "UNAVAILABLE") &&
    Object.values(data ?? {}).every((value) => value === null)
  );
}

/** Sends the text of a response, compressed if permitted. */
async function send(
  request: Request,
  response: Response,
  work: OperationWork,
  { text, status, type }: { text: string; status: number; type: string },
): Promise<void> {
  response.statusCode = status;
  response.setHeader("Content-Type", type);
  if (work.isReplayed) response.setHeader("Idempotency-Replayed", "true");
  let content: string | Buffer = text;
  if (isCompressible(requestState(request), work)) {
    if (!response.hasHeader("Vary")) response.setHeader("Vary", "Accept-Encoding");
    const found = await compressed(text, request, work);
    if (found) {
      response.setHeader("Content-Encoding", found.encoding);
      content = found.bytes;
    }
  }
  await endInChunks(response, content);
}

/** Finds the compiled form of a query, and notes it in the request state; returns whether there is one. */
export type FindCompiled = (request: IncomingMessage & { body?: unknown }) => boolean;

/** Answers a query that has a compiled form without its plan; returns the JSON text, or undefined. */
export type AnswerCompiled = (request: Request, work: OperationWork) => Promise<string | undefined>;

/** Records which parts of the schema a request has used; see SchemaUsage. */
export type NoteUse = (request: Request) => void;

/** Sets and returns the position header of a response. A response without data has no position. */
function tellPosition(
  response: Response,
  positions: Positions | undefined,
  { position }: OperationWork,
): string | undefined {
  if (!positions || position === undefined) return undefined;
  const text = positions.write(position);
  response.setHeader(POSITION_HEADER, text);
  return text;
}

/** Receives the text of a response. */
export type Send = (
  request: Request,
  response: Response,
  work: OperationWork,
  answer: { text: string; status: number; type: string },
) => Promise<void>;

async function answerOperation(
  { grafserv, languageOfUser, answerCompiled, positions, takeText = send, beforePlan }: GraphqlDeps,
  request: Request,
  response: Response,
  work: OperationWork,
  tag: Tag | undefined,
): Promise<void> {
  const state = requestState(request);
  const { claims } = state;
  const compiled = state.compiled ? await answerCompiled?.(request, work) : undefined;
  if (compiled !== undefined) {
    work.end();
    tellPosition(response, positions, work);
    // If the token has changed meanwhile, nothing was checked for it.
    if (tag && state.claims === claims) setEntityTag(request, response, tag);
    const type = `${request.headers.accept}; charset=utf-8`;
    return takeText(request, response, work, { text: compiled, status: 200, type });
  }
  beforePlan?.(request, response);
  const language = (state.language = viewerLanguageOnce(request, languageOfUser));
  const result = await grafserv.answerOperation(request, response);
  if (!tellsNothing(result)) await state.tokenCheck?.complete();
  if (state.subscription) {
    // A subscription lasts as long as its reader, and uses connections only for each event.
    work.end();
    return writeSubscription(response, state.subscription, {
      state,
      work,
      positions,
      language: await language(),
    });
  }
  if (result?.type === "json") {
    const answer = result.json as Answer;
    if (answer.errors) {
      completeErrors(answer, state);
      localizeErrors(answer.errors, await language());
    }
    const position = tellPosition(response, positions, work);
    if (position !== undefined) answer.extensions = { ...answer.extensions, position };
    const { "content-type": contentType = "application/json" } = result.headers;
    const text = await written(answer, state, work);
    // A slow reader must not block anyone.
    work.end();
    if (state.takesEvents === "only") return answerOnce(response, text);
    const type = contentType.replace(";charset", "; charset");
    await takeText(request, response, work, { text, status: result.statusCode, type });
  } else if (result?.type === "buffer") {
    response.writeHead(result.statusCode, result.headers).end(result.buffer);
  } else {
    throw result?.type === "error"
      ? result.error
      : new Error(`An answer of type ${result?.type} was not expected.`);
  }
}

/** The dependencies of the endpoint. */
export interface GraphqlDeps {
  readonly grafserv: Grafserv;
  readonly languageOfUser?: LanguageOfUser | undefined;
  readonly findCompiled?: FindCompiled | undefined;
  readonly answerCompiled?: AnswerCompiled | undefined;
  readonly tagOf?: TagOf | undefined;
  /** Receives the text of a response. Default: it is sent. */
  readonly takeText?: Send;
  /** Called before a plan is executed. */
  readonly beforePlan?: (request: Request, response: Response) => void;
  /** Called after an operation was answered. */
  readonly noteUse?: NoteUse | undefined;
  /** Positions of the database. Default: responses have none. */
  readonly positions?: Positions | undefined;
}

/**
 * Admits a validated request (see admission.ts), executes it with grafserv unless it is compiled, and writes the
 * response.
 */
export function graphql(deps: GraphqlDeps): RequestHandler {
  return async (request, response) => {
    const state = requestState(request);
    deps.findCompiled?.(request);
    const work = new OperationWork(partyOf(state.claims?.userId ?? null, request.ip), state.bodyBytes);
    work.notBefore = deps.positions?.requested(request);
    const tag = state.compiled && deps.tagOf && wantsTag(request) ? await deps.tagOf(request) : undefined;
    const { notBefore } = work;
    if (tag && answerUnchanged(request, response, tag, { positions: deps.positions, notBefore })) return;
    if (!(await admit(work, response, state))) return;
    state.work = work;
    work.trace = state.trace;
    work.heldTransaction = state.held?.(work);
    try {
      state.running = answerOperation(deps, request, response, work, tag);
      await state.running;
      deps.noteUse?.(request);
    } finally {
      work.end();
    }
  };
}

/**
 * The same for internal requests on behalf of a viewer: returns the text of the response.
 * @returns undefined if the client has disconnected
 */
export async function answerInside(
  deps: GraphqlDeps,
  request: Request,
  response: Response,
): Promise<string | undefined> {
  let answer: string | undefined;
  const takeText: Send = async (_request, _response, _work, { text }) => void (answer = text);
  await graphql({ ...deps, tagOf: undefined, positions: undefined, takeText })(
    request,
    response,
    (error: unknown) => {
      throw error;
    },
  );
  return answer;
}
