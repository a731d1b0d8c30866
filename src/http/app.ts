/** The HTTP application: all middlewares and routes, in the order in which they handle a request. */
import type { RequestListener } from "node:http";
import express, { type RequestHandler } from "express";
import type { Logger } from "../base/log.ts";
import type { PostGraphileInstance } from "postgraphile";
import type { ConstraintMessages } from "../database/constraintMessages.ts";
import type { Live } from "../live/live.ts";
import type { LanguageOfUser } from "./viewerLanguage.ts";
import type { Positions } from "../database/position.ts";
import { acceptJson } from "./accept.ts";
import { type Authenticate, type AuthenticateKnown, authentication } from "./authentication.ts";
import { readBody } from "./body.ts";
import { cors } from "./cors.ts";
import { eventStream, streamTickets } from "./eventStreamRoutes.ts";
import { getOfDocument, isGetOfDocument } from "./getOfDocument.ts";
import { Grafserv } from "./grafserv.ts";
import type { TagOf } from "./conditionalRequests.ts";
import {
  type AnswerCompiled,
  answerInside,
  type FindCompiled,
  graphql,
  type GraphqlDeps,
  type NoteUse,
} from "./graphqlEndpoint.ts";
import { graphqlRequest } from "./graphqlRequest.ts";
import { httpsOnly } from "./httpsOnly.ts";
import { inTurn } from "./inTurn.ts";
import { jobConsole } from "./jobConsole.ts";
import { agentsOnly, mcp, protectedResource, type McpDeps } from "./mcp/endpoint.ts";
import { jsonOnly } from "./mediaType.ts";
import type { ApiNumbers, Metrics } from "./metrics.ts";
import { onlyMethods } from "./onlyMethods.ts";
import { operationStatements, statementReaders, type StatementsDeps } from "./operationStatements.ts";
import { type Demo, portal, type PortalDeps } from "./portalRoutes.ts";
import { notFound, refuse } from "./refuse.ts";
import { rawBody } from "./rawBody.ts";
import { type Begin, beginner, requestId } from "./requestId.ts";
import { requestLog } from "./requestLog.ts";
import { securityHeaders } from "./securityHeaders.ts";
import { shortPath } from "./shortPath.ts";
import { signingForm } from "./signing.ts";
import { noTrustedDocuments, type TrustedDocuments } from "./trustedDocuments.ts";
import { isMultipart, uploads, type UploadDeps } from "./uploads.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

/** Dependencies of the HTTP layer. */
export interface AppDeps {
  readonly config: {
    readonly production: boolean;
    /** In the format of express: addresses of proxies, or their number. */
    readonly trustProxy: string[] | number | false;
    readonly explorer: boolean;
  };
  readonly log: Logger;
  /** Its preset has to extend `transportPreset`. */
  readonly pgl: Pick<PostGraphileInstance, "createServ">;
  readonly authenticate: Authenticate;
  /** The same for known tokens. Default: none is known. */
  readonly authenticateKnown?: AuthenticateKnown;
  /** Finds compiled queries. Default: all plans are executed. */
  readonly findCompiled?: FindCompiled;
  /** Answers compiled queries. */
  readonly answerCompiled?: AnswerCompiled;
  /** Positions of the database. Default: responses have none. */
  readonly positions?: Positions;
  /** Entity tags of responses. Default: none. */
  readonly tagOf?: TagOf;
  readonly noteUse?: NoteUse;
  readonly constraintMessages: ConstraintMessages;
  /** Language of messages to a user. Default: from the header Accept-Language. */
  readonly languageOfUser?: LanguageOfUser;
  /** Request metrics. Default: none. */
  readonly metrics?: Metrics;
  /** Further metrics. */
  readonly numbers?: () => ApiNumbers;
  /** Serves file contents at signed URLs. */
  readonly filePage?: RequestHandler;
  /** GET /t/:key: tracker links. */
  readonly trackers?: RequestHandler<{ key: string }>;
  /** /unsubscribe/:token: links in notification mails. */
  readonly unsubscribe?: RequestHandler<{ token: string }>;
  /** /confirm/:token: links in consent requests. */
  readonly confirm?: RequestHandler<{ token: string }>;
  /** /sign/:token: links in signing invitations. */
  readonly signing?: RequestHandler<{ token: string }>;
  /** /stop-email-change/:token: links in mails about a change of address. */
  readonly stopEmailChange?: RequestHandler<{ token: string }>;
  /** GET /calendars/:token.ics: appointment feeds. */
  readonly calendars?: RequestHandler<{ token: string }>;
  /** /integrations/callback: OAuth redirect URI. */
  readonly consent?: RequestHandler;
  /** POST /webhooks/payments: events of the payment processor. */
  readonly paymentsWebhook?: RequestHandler;
  /** POST /webhooks/messages: events of the text message provider. */
  readonly messagesWebhook?: RequestHandler;
  /** POST /webhooks/signing/:id: events of the electronic signature provider. */
  readonly signingWebhook?: RequestHandler<DatabaseValue>;
  /** GET /events/stream and POST /events/tickets. */
  readonly live?: Live;
  /** Further GET routes, such as `/healthz` and `/readyz`: path → handler. */
  readonly pages?: Readonly<Record<string, RequestHandler>>;
  /** Handles files of multipart requests; without it they are refused like any other media type. */
  readonly uploads?: UploadDeps;
  /** Enables /mcp. Default: disabled. */
  readonly mcp?: McpDeps;
  /** Registered documents. Default: none. */
  readonly documents?: TrustedDocuments;
  /** Served schema, for the reference as Markdown. Default: no such reference. */
  readonly schema?: McpDeps["schema"];
  /** Reads the statements of operations for the explorer. Default: nobody may. */
  readonly statements?: StatementsDeps;
  /** Demo users for signing in at the portal; never in production. Default: none. */
  readonly demo?: Demo;
  /** Run after authentication and before the body is read, in this order. */
  readonly beforeBody?: readonly RequestHandler[];
  /** Run when `request.body` is the validated GraphQL request, in this order; includes idempotency. */
  readonly beforeGraphql?: readonly RequestHandler[];
}

const portalDeps = ({
  config: { production },
  schema,
  authenticate,
  demo,
  statements,
}: AppDeps): PortalDeps => ({
  demo: production ? undefined : demo,
  statements: statements && (production ? "operators" : "everyone"),
  reference: schema && { schema, authenticate, production },
});

/** Begins requests, which are logged and counted when they end. */
function begins({ log, constraintMessages, metrics }: AppDeps): Begin {
  const writeLine = requestLog(log);
  return beginner(log, constraintMessages, (request, response) => {
    writeLine(request, response);
    metrics?.count(request, response);
  });
}

const endpointDeps = (deps: AppDeps): GraphqlDeps => ({
  grafserv: deps.pgl.createServ((options) => new Grafserv(options)),
  languageOfUser: deps.languageOfUser,
  findCompiled: deps.findCompiled,
  answerCompiled: deps.answerCompiled,
  positions: deps.positions,
  tagOf: deps.tagOf,
  noteUse: deps.noteUse,
});

/** POST /explorer/sql: the chain of POST /graphql behind a check of who may read statements. */
const statementsRoute = (
  { config: { production }, authenticate, documents, beforeBody = [], beforeGraphql = [] }: AppDeps,
  statements: StatementsDeps,
  endpoint: GraphqlDeps,
): RequestHandler[] => [
  onlyMethods("POST"),
  jsonOnly,
  authentication(authenticate, production),
  statementReaders(statements, production),
  ...beforeBody,
  readBody,
  graphqlRequest(documents),
  ...beforeGraphql,
  operationStatements(endpoint, statements),
];

/**
 * Assembles the middlewares in the order in which they handle a request, behind the short path. Does not listen: see
 * `listen.ts`.
 */
export function createApp(deps: AppDeps): RequestListener {
  const { config } = deps;
  if (deps.numbers) deps.metrics?.watch(deps.numbers);
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.enable("case sensitive routing");
  app.enable("strict routing");
  app.set("trust proxy", config.trustProxy);

  const begin = begins(deps);
  app.use(requestId(begin), securityHeaders, httpsOnly);
  const endpoint = endpointDeps(deps);
  app.all(
    "/graphql",
    cors("GET, POST"),
    (request, response, next) =>
      isGetOfDocument(request) ? next() : onlyMethods("POST")(request, response, next),
    (request, response, next) =>
      request.method === "GET" || (deps.uploads && isMultipart(request))
        ? next()
        : jsonOnly(request, response, next),
    acceptJson,
    authentication(deps.authenticate, config.production),
    ...(deps.beforeBody ?? []),
    getOfDocument(deps.documents),
    ...(deps.uploads ? [uploads(deps.uploads, deps.documents)] : []),
    readBody,
    graphqlRequest(deps.documents),
    ...(deps.beforeGraphql ?? []),
    graphql(endpoint),
  );
  if (deps.mcp) {
    for (const path of ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"])
      app.all(path, cors("GET"), onlyMethods("GET", "HEAD"), protectedResource(deps.mcp));
    app.all(
      "/mcp",
      onlyMethods("POST"),
      jsonOnly,
      agentsOnly(deps.mcp),
      ...(deps.beforeBody ?? []),
      readBody,
      mcp(deps.mcp, (request, response) => answerInside(endpoint, request, response)),
    );
  }
  if (deps.live) {
    app.all("/events/stream", cors("GET"), onlyMethods("GET"), eventStream(deps.live, deps.languageOfUser));
    app.all("/events/tickets", cors("POST"), onlyMethods("POST"), inTurn(streamTickets(deps.live)));
  }
  if (deps.filePage) app.all("/files/:key/:name", onlyMethods("GET", "HEAD"), deps.filePage);
  for (const [path, page] of Object.entries(deps.pages ?? {}))
    app.all(path, onlyMethods("GET", "HEAD"), page);
  if (deps.trackers)
    app.all("/t/:key", onlyMethods("GET", "HEAD") as RequestHandler<DatabaseValue>, inTurn(deps.trackers));
  for (const [path, page] of Object.entries({
    "/unsubscribe/:token": deps.unsubscribe,
    "/confirm/:token": deps.confirm,
    "/stop-email-change/:token": deps.stopEmailChange,
  }))
    if (page)
      app.all(path, onlyMethods("GET", "HEAD", "POST") as RequestHandler<DatabaseValue>, inTurn(page));
  if (deps.signing)
    app.all(
      "/sign/:token",
      onlyMethods("GET", "HEAD", "POST") as RequestHandler<DatabaseValue>,
      signingForm,
      inTurn(deps.signing),
    );
  if (deps.calendars)
    app.all(
      "/calendars/:token.ics",
      onlyMethods("GET", "HEAD") as RequestHandler<DatabaseValue>,
      inTurn(deps.calendars),
    );
  if (deps.consent) app.all("/integrations/callback", onlyMethods("GET", "POST"), inTurn(deps.consent));
  for (const [path, notices] of Object.entries({
    "/webhooks/payments": deps.paymentsWebhook,
    "/webhooks/messages": deps.messagesWebhook,
    "/webhooks/signing/:id": deps.signingWebhook,
  }))
    if (notices) app.all(path, onlyMethods("POST"), rawBody, inTurn(notices));
  app.use(jobConsole());
  if (config.explorer) app.use(portal(portalDeps(deps)));
  if (config.explorer && deps.statements)
    app.all("/explorer/sql", ...statementsRoute(deps, deps.statements, endpoint));
  app.use(notFound, refuse(deps.languageOfUser));
  const { authenticateKnown, findCompiled, documents = noTrustedDocuments } = deps;
  if (!authenticateKnown || !findCompiled || deps.beforeBody || deps.beforeGraphql) return app;
  const { production } = config;
  return shortPath({ app, begin, production, authenticateKnown, documents, findCompiled, endpoint });
}
