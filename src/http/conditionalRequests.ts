/** Conditional requests: answers 304 if the client already has the current response. See docs/caching.md. */
import type { Request, Response } from "express";
import fresh from "fresh";
import { POSITION_HEADER, parseLsn, type Positions } from "../database/position.ts";
import { requestState } from "./requestState.ts";

/** Identity of a response at this moment. */
export interface Tag {
  /** In the format of the header ETag. */
  readonly text: string;
  /** WAL position of the data. */
  readonly reached: bigint;
}

/** Finds the entity tag of a response; undefined if it cannot be determined without computing the response. */
export type TagOf = (request: Request) => Promise<Tag | undefined>;

/** Whether the client wants a tag. For POST it must ask, since determining it costs a round trip. */
export const wantsTag = (request: Request): boolean =>
  request.method === "GET" || request.headers["if-none-match"] !== undefined;

/** Whether the client has the response with this tag. */
export const hasCurrent = (request: Request, etag: string): boolean =>
  fresh({ "if-none-match": request.headers["if-none-match"] }, { etag });

/** Sets Cache-Control: private with revalidation; public if no token was sent. */
export function setEntityTag(request: Request, response: Response, { text }: Tag): void {
  const whose = requestState(request).claims?.userId == null ? "public" : "private";
  response.setHeader("ETag", text);
  response.setHeader("Cache-Control", `${whose}, no-cache`);
  response.setHeader("Vary", "Accept, Accept-Encoding, Accept-Language, Authorization");
}

/**
 * Answers 304 if the client already has the response.
 * @param notBefore minimum WAL position
 * @returns whether it did
 */
export function answerUnchanged(
  request: Request,
  response: Response,
  tag: Tag,
  { positions, notBefore }: { positions: Positions | undefined; notBefore: string | undefined },
): boolean {
  if (!hasCurrent(request, tag.text)) return false;
  if (notBefore !== undefined && parseLsn(notBefore) > tag.reached) return false;
  setEntityTag(request, response, tag);
  if (positions) response.setHeader(POSITION_HEADER, positions.write(tag.reached));
  response.writeHead(304).end();
  return true;
}
