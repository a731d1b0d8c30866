import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";

/** One state of the API: its request handler, and its resources. */
export interface ApiState {
  app: (request: IncomingMessage, response: ServerResponse) => void;
  graphql: { isReachable(): Promise<boolean>; drain(): void; release(): Promise<void> };
}

export interface ReloadableApi<Given> {
  /** Passes each request to the current state. */
  handler: RequestListener;
  isReachable(): Promise<boolean>;
  /** Ends endless responses, such as event streams. */
  drain(): void;
  /**
   * Builds a new state and replaces the current one, which first completes its responses.
   * @param given the parts that already exist.
   */
  reload(given?: Given): Promise<void>;
  release(): Promise<void>;
}

/** The API in the state that `make` builds; it can follow a schema that changes while it serves. */
export async function reloadableApi<Given>(
  make: (given?: Given) => Promise<ApiState>,
): Promise<ReloadableApi<Given>> {
  let present = count(await make());
  const retiring = new Set<Promise<void>>();
  return {
    handler: (request, response) => present.handle(request, response),
    isReachable: () => present.isReachable(),
    drain: () => present.drain(),
    reload: async (given) => {
      const next = count(await make(given));
      const done = present.retire();
      present = next;
      retiring.add(done);
      done.finally(() => retiring.delete(done)).catch(() => {}); // reported by the release
    },
    release: async () => {
      await Promise.all([present.retire(), ...retiring]);
    },
  };
}

/** A state that counts its running responses. */
function count({ app, graphql }: ApiState) {
  let open = 0;
  const idle = Promise.withResolvers<void>();
  let retired = false;
  const settle = () => {
    if (retired && open === 0) idle.resolve();
  };
  const onClose = () => {
    open--;
    settle();
  };
  return {
    handle: (request: IncomingMessage, response: ServerResponse) => {
      open++;
      response.on("close", onClose);
      app(request, response);
    },
    isReachable: () => graphql.isReachable(),
    drain: () => graphql.drain(),
    retire: async () => {
      retired = true;
      // Clients reopen their streams, which the next state serves.
      graphql.drain();
      settle();
      await idle.promise;
      await graphql.release();
    },
  };
}
