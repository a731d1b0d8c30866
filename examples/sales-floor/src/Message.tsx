import { isPlatError } from "@plat/client";

/** The error message of the service, and the request id, by which support finds the request in the log. */
export function Message({ of: error }: { of: unknown }) {
  if (!error) return null;
  return (
    <p role="alert">
      {error instanceof Error ? error.message : String(error)}
      {isPlatError(error) && error.requestId && <small> Request {error.requestId}</small>}
    </p>
  );
}
