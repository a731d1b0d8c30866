/** One POST to an address that a user gave: to what was checked, without redirects, for a limited time and answer. */
import { request } from "node:https";
import { performance } from "node:perf_hooks";
import { resolvePublicAddress, type AddressPolicy } from "./publicAddress.ts";

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
  /** Characters of it that are given back at most; 2,000 where left out. */
  textLimit?: number;
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
  const { url, addresses, isLoopback } = await Promise.race([
    resolvePublicAddress(address, options),
    rejectOn(signal),
  ]);
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      {
        method: "POST",
        headers: { ...options.headers, "content-length": Buffer.byteLength(options.body) },
        agent: false,
        signal,
        rejectUnauthorized: !isLoopback,
        // The name is not asked for again: the connection goes to what was checked.
        lookup: (_host, { all }, found) => {
          if (all) found(null, addresses);
          else found(null, addresses[0]!.address, addresses[0]!.family);
        },
      },
      (response) => {
        const parts: Buffer[] = [];
        let size = 0;
        const finish = () => {
          resolve({
            status: response.statusCode!,
            text: firstPart(Buffer.concat(parts), options.textLimit ?? 2000),
            retryAfter: secondsOf(response.headers["retry-after"]),
          });
          outgoing.destroy();
        };
        response.on("data", (part: Buffer) => {
          parts.push(part.subarray(0, options.answerLimit - size));
          size += part.length;
          if (size >= options.answerLimit) finish();
        });
        response.on("end", finish);
        response.on("error", reject);
      },
    );
    outgoing.on("error", reject);
    outgoing.end(options.body);
  });
}

function rejectOn(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

/** Text as PostgreSQL takes it. */
function firstPart(bytes: Buffer, length: number): string {
  return new TextDecoder()
    .decode(bytes.subarray(0, 2 * length))
    .replaceAll("\0", "\uFFFD")
    .slice(0, length);
}

/** What a header Retry-After says, in seconds: seconds or a date, as HTTP allows. */
export function secondsOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - Date.now()) / 1000));
}
