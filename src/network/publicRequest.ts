/** One request to an address that a user gave: to what was checked, without redirects, for a limited time and answer. */
import { request } from "node:https";
import { inSpan, traceparent } from "../tracing/spans.ts";
import { workContext } from "../base/workContext.ts";
import type { PublicAgent } from "./agent.ts";
import { resolvePublicAddress, type AddressPolicy, type Destination } from "./publicAddress.ts";

export interface Received {
  status: number;
  /** As much of the body as was asked for. */
  body: Buffer;
  /** Whether there was more of it. */
  isCut: boolean;
  /** Seconds that the receiver asks to wait, by the header Retry-After. */
  retryAfter: number | undefined;
}

export interface RequestOptions extends AddressPolicy {
  method: "GET" | "POST" | "PUT";
  headers: Record<string, string>;
  body?: string | Buffer;
  /** Until the answer is complete. */
  signal: AbortSignal;
  /** Bytes of the answer that are read at most; the rest is cut off. */
  answerLimit: number;
  /** Whose connections are used again; a connection of its own where omitted. */
  agent?: PublicAgent;
}

/** For whom it is sent: the id of the request that has led to it, and the trace that is recorded. */
function contextHeaders(): Record<string, string> {
  const { requestId } = workContext.getStore() ?? {};
  const parent = traceparent();
  return { ...(requestId && { "x-request-id": requestId }), ...(parent && { traceparent: parent }) };
}

/** @throws AddressRefused, AddressUnknown, or what broke the connection; the reason of the signal */
export function requestPublicly(address: string, options: RequestOptions): Promise<Received> {
  // Not the address: it may have secrets in it.
  const attributes = { "http.request.method": options.method };
  return inSpan({ name: options.method, kind: "client", attributes }, () => send(address, options));
}

async function send(address: string, options: RequestOptions): Promise<Received> {
  const destination = await Promise.race([resolvePublicAddress(address, options), rejectOn(options.signal)]);
  try {
    return await requestOnce(destination, options);
  } catch (error) {
    // The receiver closed the kept connection in the moment in which it was used: that says nothing about the receiver.
    if (!(error instanceof StaleConnection)) throw error;
    return await requestOnce(destination, { ...options, agent: undefined });
  }
}

/** A connection that was kept turned out to be closed before anything was answered. */
class StaleConnection extends Error {}

function requestOnce(
  { url, addresses, isLoopback }: Destination,
  {
    method,
    headers,
    body,
    signal,
    answerLimit,
    agent,
  }: Omit<RequestOptions, "agent"> & {
    agent?: PublicAgent | undefined;
  },
): Promise<Received> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      {
        method,
        headers: {
          ...headers,
          ...contextHeaders(),
          ...(body !== undefined && { "content-length": Buffer.byteLength(body) }),
        },
        agent: agent ?? false,
        checkedAddresses: addresses,
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
        const finish = (isCut: boolean) => {
          resolve({
            status: response.statusCode!,
            body: Buffer.concat(parts),
            isCut,
            retryAfter: secondsOf(response.headers["retry-after"]),
          });
          // One that is answered in full goes back to its agent by itself.
          if (isCut || !agent) outgoing.destroy();
        };
        response.on("data", (part: Buffer) => {
          parts.push(part.subarray(0, Math.max(answerLimit - size, 0)));
          size += part.length;
          if (size >= answerLimit) finish(true);
        });
        response.on("end", () => finish(false));
        response.on("error", reject);
      },
    );
    outgoing.on("error", (error: NodeJS.ErrnoException) => {
      const isStale = outgoing.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
      reject(isStale && !signal.aborted ? new StaleConnection(error.message) : error);
    });
    outgoing.end(body);
  });
}

function rejectOn(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

/** What a header Retry-After says, in seconds: seconds or a date, as HTTP allows. */
export function secondsOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - Date.now()) / 1000));
}
