/** One request to a user-provided URL: to the checked addresses, without redirects, with limits on time and response size. */
import { request } from "node:https";
import type { Socket } from "node:net";
import { inSpan, traceparent } from "../tracing/spans.ts";
import { workContext } from "../base/workContext.ts";
import type { PublicAgent } from "./agent.ts";
import { resolvePublicAddress, type AddressPolicy, type Destination } from "./publicAddress.ts";
import { sliceInput } from "./slicedInput.ts";
import { areTooMany } from "./smallParts.ts";

export interface PublicResponse {
  status: number;
  /** As much of the body as was requested. */
  body: Buffer;
  /** Whether the body was longer. */
  isCut: boolean;
  /** Seconds of the header Retry-After. */
  retryAfter: number | undefined;
}

export interface RequestOptions extends AddressPolicy {
  method: "GET" | "POST" | "PUT";
  headers: Record<string, string>;
  body?: string | Buffer;
  /** Timeout for the complete response. */
  signal: AbortSignal;
  /** Maximum bytes of the response that are read; the rest is discarded. */
  answerLimit: number;
  /** The agent whose connections are reused; by default, a separate connection is opened. */
  agent?: PublicAgent;
}

/** Informational responses (1xx) that may come before the response. */
const MOST_INFORMATION = 10;

/** The id of the request that caused it, and the trace, if recorded. */
function contextHeaders(): Record<string, string> {
  const { requestId } = workContext.getStore() ?? {};
  const parent = traceparent();
  return { ...(requestId && { "x-request-id": requestId }), ...(parent && { traceparent: parent }) };
}

/** @throws AddressRefused, AddressUnknown, the connection error, or the reason of the signal */
export function requestPublicly(address: string, options: RequestOptions): Promise<PublicResponse> {
  // Not the URL: it may contain secrets.
  const attributes = { "http.request.method": options.method };
  return inSpan({ name: options.method, kind: "client", attributes }, () => send(address, options));
}

async function send(address: string, options: RequestOptions): Promise<PublicResponse> {
  const destination = await Promise.race([resolvePublicAddress(address, options), rejectOn(options.signal)]);
  try {
    return await requestOnce(destination, options);
  } catch (error) {
    // The receiver closed the idle connection while it was being reused, which is not a failure of the receiver.
    if (!(error instanceof StaleConnection)) throw error;
    return await requestOnce(destination, { ...options, agent: undefined });
  }
}

/** A reused connection was closed before a response began. */
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
): Promise<PublicResponse> {
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
        // No second resolution: the connection goes to the checked addresses.
        lookup: (_host, { all }, found) => {
          if (all) found(null, addresses);
          else found(null, addresses[0]!.address, addresses[0]!.family);
        },
      },
      (response) => {
        const parts: Buffer[] = [];
        let count = 0;
        let size = 0;
        const finish = (isCut: boolean) => {
          resolve({
            status: response.statusCode!,
            body: Buffer.concat(parts),
            isCut,
            retryAfter: secondsOf(response.headers["retry-after"]),
          });
          // After a complete response, the socket returns to its agent.
          if (isCut || !agent) outgoing.destroy();
        };
        response.on("data", (part: Buffer) => {
          parts.push(part.subarray(0, Math.max(answerLimit - size, 0)));
          size += part.length;
          count += 1;
          if (size >= answerLimit || areTooMany(count, size)) finish(true);
        });
        response.on("end", () => finish(false));
        response.on("error", reject);
      },
    );
    outgoing.once("socket", (socket: Socket) => sliceInput(socket, destroyForRecords));
    let informed = 0;
    outgoing.on("information", () => {
      informed += 1;
      if (informed > MOST_INFORMATION)
        outgoing.destroy(new Error(`There were more than ${MOST_INFORMATION} informational responses.`));
    });
    outgoing.on("error", (error: NodeJS.ErrnoException) => {
      const isStale = outgoing.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
      reject(isStale && !signal.aborted ? new StaleConnection(error.message) : error);
    });
    outgoing.end(body);
  });
}

function destroyForRecords(socket: Socket): void {
  socket.destroy(new Error("The response arrived in too many small TLS records."));
}

function rejectOn(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

/** Seconds of a header Retry-After, which is a number of seconds or a date. */
export function secondsOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - Date.now()) / 1000));
}
