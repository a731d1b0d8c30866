/**
 * The short path of a request. Most requests are small queries that a client sends repeatedly with the same token. They
 * are answered without the middleware chain of the application, by the same rules and the same functions. If anything
 * differs (method, path, headers, an unknown token, a document that is not compiled, any error), the chain continues
 * where the short path ended.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { TLSSocket } from "node:tls";
import type { Express, Request, RequestHandler, Response } from "express";
import { SMALL_BODY } from "../admission/semaphores.ts";
import { workContext } from "../base/workContext.ts";
import { isTraced } from "../tracing/spans.ts";
import { negotiatedType } from "./accept.ts";
import { type AuthenticateKnown, authorizationOf, setViewer } from "./authentication.ts";
import { incompleteBody } from "./body.ts";
import { allowOrigins } from "./cors.ts";
import { requestOfUrl, isGetOfDocument } from "./getOfDocument.ts";
import { type FindCompiled, graphql, type GraphqlDeps } from "./graphqlEndpoint.ts";
import { type AskedRequest, parseGraphQLRequest, setBody } from "./graphqlRequest.ts";
import type { Begin } from "./requestId.ts";
import type { RequestState } from "./requestState.ts";
import { setSecurityHeaders } from "./securityHeaders.ts";
import type { TrustedDocuments } from "./trustedDocuments.ts";

export interface ShortPathDeps {
  /** The chain. */
  readonly app: Express;
  readonly begin: Begin;
  readonly production: boolean;
  readonly authenticateKnown: AuthenticateKnown;
  readonly documents: Pick<TrustedDocuments, "known">;
  readonly findCompiled: FindCompiled;
  /** The dependencies of the last middleware of the chain. */
  readonly endpoint: GraphqlDeps;
}

/** A request on the short path. */
type Short = IncomingMessage & { ip?: string | undefined; body?: unknown };

const PATH = "/graphql";
/** Addresses of GET requests that were read, and their longest. */
const MOST_URLS = 1_000;
const LONGEST_URL = 1_000;

/** Whether the body is small JSON, whose length is announced. */
const hasSmallJson = ({ headers }: IncomingMessage): boolean =>
  headers["content-type"] === "application/json" &&
  headers["content-encoding"] === undefined &&
  Number(headers["content-length"]) <= SMALL_BODY;

const hasNoBody = ({ headers }: IncomingMessage): boolean =>
  headers["content-length"] === undefined && headers["transfer-encoding"] === undefined;

class ShortPath {
  readonly #deps: ShortPathDeps;
  readonly #trusts: (address: string | undefined, hop: number) => boolean;
  readonly #answerQuery: (...given: Parameters<RequestHandler>) => unknown;
  readonly #byUrl = new Map<string, AskedRequest>();

  constructor(deps: ShortPathDeps) {
    this.#deps = deps;
    this.#answerQuery = graphql({
      ...deps.endpoint,
      beforePlan: (request, response) => this.#extend(request, response),
    });
    this.#trusts = deps.app.get("trust proxy fn") as (address: string | undefined, hop: number) => boolean;
  }

  take(request: Short, response: ServerResponse): void {
    const { app, begin, production, authenticateKnown } = this.#deps;
    const isPost = request.method === "POST" && request.url === PATH && hasSmallJson(request);
    if (!isPost && !this.#isGet(request)) return app(request, response);
    const type = negotiatedType(request.headers.accept);
    if (type === undefined || !this.#isSecure(request, response) || isTraced()) return app(request, response);
    let authorization: string | undefined;
    try {
      authorization = authorizationOf(request);
    } catch {
      return app(request, response);
    }
    const state = begin(request, response);
    setSecurityHeaders(response, true);
    allowOrigins(response);
    request.headers.accept = type;
    let claims: RequestState["claims"];
    try {
      claims = authenticateKnown(authorization, request);
    } catch {
      return app(request, response);
    }
    if (!claims) return app(request, response);
    setViewer(state, claims, production);
    // Compression of responses to visitors needs the methods of the chain.
    if (claims.userId === null) this.#extend(request, response);
    if (!isPost) return this.#answer(request, response, state, this.#requestOfUrl(request.url!));
    this.#receive(request, response, state);
  }

  #isGet(request: IncomingMessage): boolean {
    return request.url!.startsWith(`${PATH}?`) && isGetOfDocument(request) && hasNoBody(request);
  }

  /** Whether it came over HTTPS. Sets its address. */
  #isSecure(request: Short, response: ServerResponse): boolean {
    const { socket } = request;
    if (this.#trusts(socket.remoteAddress, 0)) {
      // Headers of proxies are evaluated like in the chain.
      this.#extend(request, response);
      return (request as Request).secure;
    }
    request.ip = socket.remoteAddress;
    return (socket as TLSSocket).encrypted;
  }

  /** Gives request and response the methods of the chain. */
  #extend(request: Short, response: ServerResponse): void {
    const { app } = this.#deps;
    Object.setPrototypeOf(request, app.request as object);
    Object.setPrototypeOf(response, app.response as object);
    (request as Request).res = response as Response;
  }

  #receive(request: Short, response: ServerResponse, state: RequestState): void {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
      state.bodyBytes = bytes.length;
      let received: AskedRequest | undefined;
      try {
        received = parseGraphQLRequest(bytes);
      } catch {
        // The chain says what is wrong.
      }
      this.#answer(request, response, state, received, bytes);
    });
    request.on("aborted", () => this.#refuse(request, response, state, incompleteBody()));
  }

  #answer(
    request: Short,
    response: ServerResponse,
    state: RequestState,
    received: AskedRequest | undefined,
    bytes?: Buffer,
  ): void {
    const { app, documents, findCompiled } = this.#deps;
    const body = received && documents.known(received);
    if (body) setBody(request, state, body, received.documentId !== undefined);
    if (!body || !findCompiled(request)) {
      request.body = bytes;
      return app(request, response);
    }
    const refuse = (error: unknown) => this.#refuse(request, response, state, error);
    workContext.run(state.context, () => {
      const answered = this.#answerQuery(request as Request, response as Response, refuse) as Promise<void>;
      answered.catch(refuse);
    });
  }

  #refuse(request: IncomingMessage, response: ServerResponse, state: RequestState, error: unknown): void {
    state.failure = { error };
    this.#deps.app(request, response);
  }

  /** @returns undefined if something is wrong with it */
  #requestOfUrl(url: string): AskedRequest | undefined {
    const known = this.#byUrl.get(url);
    if (known) return known;
    try {
      const received = requestOfUrl(url);
      if (this.#byUrl.size >= MOST_URLS) this.#byUrl.clear();
      if (url.length <= LONGEST_URL) this.#byUrl.set(url, received);
      return received;
    } catch {
      return undefined;
    }
  }
}

/** Answers on the short path what it can, and passes the rest to the chain. */
export function shortPath(deps: ShortPathDeps): RequestListener {
  const path = new ShortPath(deps);
  return (request, response) => path.take(request, response);
}
