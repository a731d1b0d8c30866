import { isPlatError } from "@plat/client";

/** What was refused, in the words of the service. Support finds the request by its id. */
export function Message({ of: error }: { of: unknown }) {
  if (!error) return null;
  return (
    <p role="alert">
      {error instanceof Error ? error.message : String(error)}
      {isPlatError(error) && error.requestId && <small> Request {error.requestId}</small>}
    </p>
  );
}
