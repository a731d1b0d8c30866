/** One POST to an address that a user gave: to what was checked, without redirects, for a limited time and answer. */
import { performance } from "node:perf_hooks";
import type { PublicAgent } from "./agent.ts";
import type { AddressPolicy } from "./publicAddress.ts";
import { requestPublicly } from "./publicRequest.ts";

export interface PostAnswer {
  status: number;
  /** The first part of the body. */
  text: string;
  /** Seconds that the receiver asks to wait, by the header Retry-After. */
  retryAfter: number | undefined;
}

export interface PostResult {
  /** Undefined where there was no complete one. */
  answer: PostAnswer | undefined;
  /** Why there was none, in a sentence. */
  failure: string | undefined;
  durationMs: number;
}

export interface PostOptions extends AddressPolicy {
  headers: Record<string, string>;
  body: string;
  timeoutMs: number;
  /** Bytes of the answer that are read at most; the rest is cut off. */
  answerLimit: number;
  /** Characters of it that are given back at most; 2,000 where omitted. */
  textLimit?: number;
  /** Whose connections are used again; a connection of its own where omitted. */
  agent?: PublicAgent;
}

/** Never throws: whatever goes wrong on the way is the result. */
export async function postPublicly(url: string, options: PostOptions): Promise<PostResult> {
  const start = performance.now();
  const signal = AbortSignal.timeout(options.timeoutMs);
  try {
    const answer = await send(url, options, signal);
    return { answer, failure: undefined, durationMs: Math.round(performance.now() - start) };
  } catch (error) {
    return {
      answer: undefined,
      failure: signal.aborted
        ? `There was no complete answer within ${options.timeoutMs / 1000} seconds.`
        : `There was no answer: ${(error as Error).message}`,
      durationMs: Math.round(performance.now() - start),
    };
  }
}

async function send(address: string, options: PostOptions, signal: AbortSignal): Promise<PostAnswer> {
  const { status, body, retryAfter } = await requestPublicly(address, {
    ...options,
    method: "POST",
    signal,
  });
  return { status, text: firstPart(body, options.textLimit ?? 2000), retryAfter };
}

/** Text as PostgreSQL takes it. */
function firstPart(bytes: Buffer, length: number): string {
  return new TextDecoder()
    .decode(bytes.subarray(0, 2 * length))
    .replaceAll("\0", "\uFFFD")
    .slice(0, length);
}
