/** One POST to a user-provided URL: to the checked addresses, without redirects, with limits on time and response size. */
import { performance } from "node:perf_hooks";
import type { PublicAgent } from "./agent.ts";
import type { AddressPolicy } from "./publicAddress.ts";
import { requestPublicly } from "./publicRequest.ts";

export interface PostAnswer {
  status: number;
  /** The first part of the body. */
  text: string;
  /** Seconds of the header Retry-After. */
  retryAfter: number | undefined;
}

export interface PostResult {
  /** Undefined if there was no complete response. */
  answer: PostAnswer | undefined;
  /** Why there was none, in a sentence. */
  failure: string | undefined;
  durationMs: number;
}

export interface PostOptions extends AddressPolicy {
  headers: Record<string, string>;
  body: string;
  timeoutMs: number;
  /** Maximum bytes of the response that are read; the rest is discarded. */
  answerLimit: number;
  /** Maximum characters of it that are returned; default: 2,000. */
  textLimit?: number;
  /** The agent whose connections are reused; by default, a separate connection is opened. */
  agent?: PublicAgent;
}

/** Never throws: failures are part of the result. */
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

/** Text that PostgreSQL accepts. */
function firstPart(bytes: Buffer, length: number): string {
  return new TextDecoder()
    .decode(bytes.subarray(0, 2 * length))
    .replaceAll("\0", "\uFFFD")
    .slice(0, length);
}
