import { createHash } from "node:crypto";

/** Identifies a content. */
export const contentHash = (...parts: string[]): string =>
  createHash("sha256").update(parts.join("\0")).digest("hex").slice(0, 16);
