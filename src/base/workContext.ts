import { AsyncLocalStorage } from "node:async_hooks";

/** For whom something is done: stands in lines of the log, and goes along with what is done for it elsewhere. */
export interface WorkContext {
  /** The `X-Request-Id` of the request that it is done for, also where a job does it later. */
  readonly requestId?: string | undefined;
  /** The task that does it, and its job. */
  readonly task?: string;
  readonly job?: string;
  /** The GraphQL operation, once it is known: its name, or the fields that one without a name begins with. */
  operation?: string | undefined;
  /** The database role of the viewer, once it is known. */
  role?: string | undefined;
}

/** That of the code that runs now; nothing for what nobody has asked for, such as a sweep. */
export const workContext = new AsyncLocalStorage<WorkContext>();
