/**
 * GET /events/stream: events of an organization as they are committed; POST /events/tickets: tickets to open a stream
 * without a header.
 */
import type { Request, RequestHandler } from "express";
import type { Bearer } from "../auth/authenticate.ts";
import { CodedError, errorBody } from "../base/errors.ts";
import type { EventFilter } from "../live/batch.ts";
import { EventStream } from "../live/eventStream.ts";
import type { Live } from "../live/live.ts";
import { sequenceOf } from "../live/sequence.ts";
import { localizeErrors } from "../messages/localizeErrors.ts";
import { type LanguageOfUser, viewerLanguage } from "./viewerLanguage.ts";
import { requestState } from "./requestState.ts";
import { endTurn } from "./requestTurns.ts";

/** Query parameters of a stream. */
const parameters = [
  "organizationId",
  "after",
  "names",
  "projectId",
  "subjectType",
  "subjectId",
  "ticket",
] as const;
type Parameters = Partial<Record<(typeof parameters)[number], string>>;

/** Maximum characters of a parameter. */
const MOST_CHARACTERS = 2_000;

const badInput = (message: string, field: string) => new CodedError("BAD_USER_INPUT", message, { field });

function parametersOf(request: Request): Parameters {
  const found: Parameters = {};
  for (const [name, value] of Object.entries(request.query)) {
    if (!parameters.includes(name as never))
      throw badInput(`A stream only accepts the parameters ${parameters.join(", ")}.`, name.slice(0, 100));
    if (typeof value !== "string" || value.length > MOST_CHARACTERS)
      throw badInput("Send each parameter only once, with commas between several names.", name);
    if (value !== "") found[name as keyof Parameters] = value;
  }
  return found;
}

function filterOf({ names, subjectType, subjectId }: Parameters, projectId: string | undefined): EventFilter {
  return {
    names: names
      ?.split(",")
      .map((name) => name.trim())
      .filter(Boolean)
      .toSorted(),
    projectId,
    subjectType,
    subjectId: subjectId?.toLowerCase(),
  };
}

/** The viewer of the header or ticket. */
async function bearerOf(live: Live, request: Request, ticket: string | undefined): Promise<Bearer> {
  const header = request.get("authorization");
  if (header !== undefined && ticket !== undefined)
    throw badInput("Send either a token in the Authorization header or a ticket, not both.", "ticket");
  const bearer =
    ticket === undefined ? await live.bearer(header, request.ip) : await live.redeem(ticket, request.ip);
  if (!bearer)
    throw new CodedError(
      "UNAUTHENTICATED",
      "Event streams require a token in the Authorization header, or a ticket from POST /events/tickets in the URL.",
    );
  requestState(request).claims = bearer.claims;
  return bearer;
}

/**
 * GET /events: streams events until the client disconnects or its access ends.
 * @throws CodedError UNAUTHENTICATED without a token or ticket; BAD_USER_INPUT (status 406) if the client does not
 * accept text/event-stream
 */
export function eventStream(live: Live, languageOfUser?: LanguageOfUser): RequestHandler {
  return async (request, response) => {
    const { accept = "*/*" } = request.headers;
    if (!/text\/event-stream|text\/\*|\*\/\*/i.test(accept))
      throw new CodedError(
        "BAD_USER_INPUT",
        "Events are sent as text/event-stream; accept this type.",
        {},
        { status: 406 },
      );
    const given = parametersOf(request);
    const { organizationId: organization, ticket } = given;
    if (organization === undefined)
      throw badInput("A stream belongs to one organization: specify its id or slug.", "organizationId");
    const bearer = await bearerOf(live, request, ticket);
    const { organizationId, projectId, head } = await live.begin(
      bearer.claims,
      organization,
      given.projectId,
    );
    // Last-Event-ID of a reconnecting client takes precedence over the URL.
    const after = sequenceOf(request.get("last-event-id") || given.after, head, "after");
    const release = live.take({ userId: bearer.claims.userId!, organizationId, ip: request.ip });
    response.once("close", release);
    if (response.closed) return release();

    const state = requestState(request);
    const language = await viewerLanguage(request, languageOfUser);
    const stream = new EventStream(response, {
      filter: filterOf(given, projectId),
      position: after ?? head,
      tell: (error) => {
        const [entry] = errorBody(error, state.id).errors;
        localizeErrors([entry!], language);
        state.errorCodes.add(error.code);
        return JSON.stringify({ message: entry!.message, ...entry!.extensions });
      },
    });
    const close = await live.open(stream, bearer, organizationId);
    stream.begin();
    endTurn(response);
    response.once("close", close);
    if (response.closed) close();
  };
}

/** POST /events/tickets: issues a ticket for a token, for clients such as EventSource that cannot send headers. */
export function streamTickets(live: Live): RequestHandler {
  return async (request, response) => {
    const bearer = await bearerOf(live, request, undefined);
    const ticket = await live.issue(bearer);
    response.setHeader("Cache-Control", "no-store");
    response.status(201).json(ticket);
  };
}
