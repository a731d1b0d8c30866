import type { RequestHandler } from "express";
import { internalMessage } from "../errors.ts";
import { endInPieces } from "./inPieces.ts";
import type { Grafserv } from "./grafserv.ts";
import { requestState, type RequestState } from "./requestState.ts";

interface Answer {
  errors?: { message: string; extensions?: Record<string, unknown> }[];
}

/** Errors that grafserv made outside of the operation, such as while there is no schema, have neither code nor id. */
function completeErrors(answer: Answer, state: RequestState): void {
  for (const error of answer.errors ?? []) {
    if (error.extensions?.requestId !== undefined) continue;
    error.message = internalMessage;
    error.extensions = { code: "INTERNAL", requestId: state.id };
    state.errorCodes.add("INTERNAL");
  }
}

/** Hands a checked request to grafserv and writes its answer. */
export function graphql(grafserv: Grafserv): RequestHandler {
  return async (request, response) => {
    const state = requestState(request);
    const result = await grafserv.answerOperation(request, response);
    if (result?.type === "json") {
      const answer = result.json as Answer;
      if (answer.errors) completeErrors(answer, state);
      const { "content-type": contentType = "application/json" } = result.headers;
      response.writeHead(result.statusCode, { "Content-Type": contentType.replace(";charset", "; charset") });
      await endInPieces(response, JSON.stringify(answer));
    } else if (result?.type === "buffer") {
      response.writeHead(result.statusCode, result.headers).end(result.buffer);
    } else {
      throw result?.type === "error"
        ? result.error
        : new Error(`An answer of type ${result?.type} was not expected.`);
    }
  };
}
