/** Answers that need not be sent again, since the client has them: docs/caching.md. */
import type { Request, Response } from "express";
import fresh from "fresh";
import { POSITION_HEADER, parseLsn, type Positions } from "../database/position.ts";
import { requestState } from "./requestState.ts";

/** What an answer that is given now is told from others by. */
export interface Tag {
  /** As the header ETag has it. */
  readonly text: string;
  /** How far in the log what it was made from reaches. */
  readonly reached: bigint;
}

/** Finds the tag of the answer to a request; undefined where equal answers cannot be told without making them. */
export type TagOf = (request: Request) => Promise<Tag | undefined>;

/** Whether the client wants to be told. By POST it says so, since a look costs a round trip. */
export const wantsTag = (request: Request): boolean =>
  request.method === "GET" || request.headers["if-none-match"] !== undefined;

/** Whether the client says that it has what the tag stands for. */
export const hasCurrent = (request: Request, etag: string): boolean =>
  fresh({ "if-none-match": request.headers["if-none-match"] }, { etag });

/** Says how an answer can be kept: by the client alone, and asked about each time; by anybody where no token was sent. */
export function tellTag(request: Request, response: Response, { text }: Tag): void {
  const whose = requestState(request).claims?.userId == null ? "public" : "private";
  response.setHeader("ETag", text);
  response.setHeader("Cache-Control", `${whose}, no-cache`);
  response.setHeader("Vary", "Accept, Accept-Encoding, Accept-Language, Authorization");
}

/**
 * Tells the client that it has the answer, where it has.
 * @param notBefore the place in the log that it has to reach at least
 * @returns whether that was so
 */
export function answerUnchanged(
  request: Request,
  response: Response,
  tag: Tag,
  { positions, notBefore }: { positions: Positions | undefined; notBefore: string | undefined },
): boolean {
  if (!hasCurrent(request, tag.text)) return false;
  if (notBefore !== undefined && parseLsn(notBefore) > tag.reached) return false;
  tellTag(request, response, tag);
  if (positions) response.setHeader(POSITION_HEADER, positions.write(tag.reached));
  response.writeHead(304).end();
  return true;
}
