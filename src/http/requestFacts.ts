import type { IncomingMessage } from "node:http";

/** The user agent, at most 500 characters, without characters that PostgreSQL refuses. */
export const userAgentOf = ({ headers }: Pick<IncomingMessage, "headers">): string | undefined =>
  headers["user-agent"]?.slice(0, 500).replaceAll("\0", "") || undefined;
