/** Shared by the two SDKs: timeouts, bounded responses, and errors in the terms of the service. */
import { DraftFailed } from "./draftProvider.ts";

const mostBytes = 1_000_000;

/** Does not follow redirects, which would leak the key, and reads at most a megabyte. */
export const boundedFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, { ...init, redirect: "error" });
  let bytes = 0;
  const counted = response.body?.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        bytes += chunk.byteLength;
        if (bytes > mostBytes) controller.error(new Error("The answer is too large."));
        else controller.enqueue(chunk);
      },
    }),
  );
  return new Response(counted ?? null, response);
};

interface ApiError extends Error {
  status?: number;
  headers?: Headers;
}

/**
 * Makes a call with a timeout for the whole response: those of the SDKs end with the headers.
 * @throws DraftFailed
 */
export async function inTime<T>(timeoutMs: number, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    return await call(signal);
  } catch (error) {
    if (error instanceof DraftFailed) throw error;
    if (signal.aborted)
      throw new DraftFailed("The drafting service did not answer in time.", true, { cause: error });
    throw failure(error as ApiError);
  }
}

function failure(error: ApiError): DraftFailed {
  const { status, headers } = error;
  const cause = error;
  if (status === undefined) {
    const reached = error.name === "SyntaxError" || error instanceof SyntaxError;
    return reached
      ? new DraftFailed("The drafting service gave an answer that cannot be read.", true, { cause })
      : new DraftFailed("The drafting service cannot be reached.", true, { cause });
  }
  if (status === 429) {
    const seconds = Number(headers?.get("retry-after"));
    return new DraftFailed("The drafting service takes no more requests for now.", true, {
      cause,
      ...(seconds > 0 && { retryAfterSeconds: Math.min(Math.ceil(seconds), 86_400) }),
    });
  }
  if (status === 401 || status === 403)
    return new DraftFailed("The drafting service refuses the service's key; tell its operator.", false, {
      cause,
    });
  if (status >= 500 || status === 408 || status === 409)
    return new DraftFailed("The drafting service is out of order for now.", true, { cause });
  return new DraftFailed(
    "The drafting service refuses the request; tell the operator of the service.",
    false,
    {
      cause,
    },
  );
}
