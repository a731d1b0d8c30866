import { AsyncLocalStorage } from "node:async_hooks";

/** Context of the current work, for log lines and for work that it causes elsewhere. */
export interface WorkContext {
  /** `X-Request-Id` of the originating request, also for jobs that it enqueued. */
  readonly requestId?: string | undefined;
  /** Current task and its job. */
  readonly task?: string;
  readonly job?: string;
  /** The GraphQL operation, once known: its name, or the leading fields of an anonymous one. */
  operation?: string | undefined;
  /** Database role of the viewer, once known. */
  role?: string | undefined;
}

/** Context of the running code; empty for work that nobody requested, such as sweeps. */
export const workContext = new AsyncLocalStorage<WorkContext>();
