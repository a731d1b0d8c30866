import type { IncomingMessage } from "node:http";

/** The program of a request, as it says itself: 500 characters at most, as PostgreSQL takes them. */
export const userAgentOf = ({ headers }: Pick<IncomingMessage, "headers">): string | undefined =>
  headers["user-agent"]?.slice(0, 500).replaceAll("\0", "") || undefined;
