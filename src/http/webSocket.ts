/**
 * GraphQL subscriptions over WebSocket, by the protocol graphql-transport-ws.
 *
 * A subscription is a POST to /graphql inside of this process, whose server-sent events become messages: token, limits,
 * registered documents, revocation and slow clients are handled by the same code as for everybody else. Queries and
 * mutations are refused.
 */
import { createServer, type IncomingMessage, request as post, type RequestListener } from "node:http";
import { type Duplex, duplexPair } from "node:stream";
import { text } from "node:stream/consumers";
import { useServer } from "graphql-ws/use/ws";
import {
  type ExecutionArgs,
  type FormattedExecutionResult,
  type GraphQLFormattedError,
  GraphQLSchema,
  parse,
} from "postgraphile/graphql";
import { WebSocketServer } from "ws";
import { internalMessage } from "../base/errors.ts";
import { markOfWebSocket } from "./webSocketRequests.ts";

const PROTOCOL = "graphql-transport-ws";
const PATH = "/graphql";
/** Bytes of a message: as many as a body may have with its document and variables. */
const MESSAGE_BYTES = 1_000_000;
/** Milliseconds that a client has to send connection_init, and that a connection may be without a subscription. */
const INIT_MS = 10_000;
const IDLE_MS = 65_000;
/** Milliseconds between two pings; a client that has not answered the last one is disconnected. */
const PING_MS = 15_000;
/** Subscriptions of a connection, which wait for their answer or run. */
const MOST_SUBSCRIPTIONS = 100;

/** Headers of the handshake that apply to its subscriptions. */
const passedOn = [
  "accept-language",
  "user-agent",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "traceparent",
  "tracestate",
] as const;

/** Whether a request asks for a WebSocket of this service. Others are answered as if they had not asked to switch. */
export const asksForWebSocket = ({ url, headers }: IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === "websocket" && url?.split("?")[0] === PATH;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

/** The token in the payload of connection_init, as `authorization`, also below `headers`; else that of the handshake. */
function authorizationOf(payload: unknown, handshake: IncomingMessage): string | undefined {
  for (const place of isObject(payload) ? [payload, payload["headers"]] : [])
    if (isObject(place))
      for (const [name, value] of Object.entries(place))
        if (name.toLowerCase() === "authorization" && typeof value === "string") return value;
  return handshake.headers.authorization;
}

/** Errors of an operation that was refused. */
class Refused extends Error {
  readonly errors: readonly GraphQLFormattedError[];

  constructor(errors: readonly GraphQLFormattedError[]) {
    super("The operation was refused.");
    this.errors = errors;
  }
}

const internal = new Refused([{ message: internalMessage, extensions: { code: "INTERNAL" } }]);
const tooMany = new Refused([
  {
    message: `A connection can have ${MOST_SUBSCRIPTIONS} subscriptions; open another one.`,
    extensions: { code: "LIMIT_EXCEEDED", limit: MOST_SUBSCRIPTIONS },
  },
]);

/**
 * Results of a subscription: the data of `next` events.
 * @throws Refused
 */
async function* resultsOf(answer: IncomingMessage | Refused): AsyncGenerator<never> {
  if (answer instanceof Refused) throw answer;
  try {
    if (!answer.headers["content-type"]?.startsWith("text/event-stream")) {
      const { errors } = JSON.parse(await text(answer)) as { errors?: GraphQLFormattedError[] };
      throw errors ? new Refused(errors) : internal;
    }
    let rest = "";
    for await (const chunk of answer.setEncoding("utf8")) {
      const events = (rest + String(chunk)).split("\n\n");
      rest = events.pop()!;
      for (const event of events) {
        const [name, data] = event.split("\n");
        if (name === "event: next") yield JSON.parse(data!.slice("data: ".length)) as never;
      }
    }
  } finally {
    answer.destroy();
  }
}

/** The body of the request. A registered document has its id as `documentId`, with an empty `query`: the protocol requires one. */
function bodyOf(payload: object): string {
  const { query, ...others } = payload as { query: string; documentId?: unknown };
  return JSON.stringify(query === "" && others.documentId !== undefined ? others : payload);
}

/** The arguments of the library for every operation, which it neither parses nor executes. */
const SUBSCRIPTION = parse("subscription { anything }");
const noSchema = new GraphQLSchema({});
const asked = (contextValue: IncomingMessage | Refused): ExecutionArgs => ({
  schema: noSchema,
  document: SUBSCRIPTION,
  contextValue,
});

export interface WebSockets {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Closes all connections, with 1001. */
  close(): Promise<void>;
}

/** @param app answers the subscriptions */
export function webSockets(app: RequestListener): WebSockets {
  const server = createServer(app);
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MESSAGE_BYTES,
    perMessageDeflate: false,
    // Without it the client is disconnected by the library, with 4406.
    handleProtocols: (protocols) => (protocols.has(PROTOCOL) ? PROTOCOL : false),
  });
  /** Requests of connections that run, by connection. */
  const running = new WeakMap<object, { count: number; idle: NodeJS.Timeout | undefined }>();

  /** Sends an operation as a request of the client of the handshake. */
  async function send(handshake: IncomingMessage, payload: unknown, body: string): Promise<IncomingMessage> {
    const [near, far] = duplexPair();
    const { remoteAddress, encrypted } = handshake.socket as IncomingMessage["socket"] & { encrypted?: true };
    Object.assign(far, { remoteAddress, encrypted });
    // The other way round it ends by itself, when everything was read.
    near.once("close", () => far.destroy());
    for (const side of [near, far]) side.on("error", () => side.destroy());
    markOfWebSocket(far);
    server.emit("connection", far);
    const headers: Record<string, string> = {
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
      accept: "application/json, text/event-stream",
      host: handshake.headers.host ?? "localhost",
    };
    for (const name of passedOn) {
      const value = handshake.headers[name];
      if (value !== undefined) headers[name] = String(value);
    }
    const authorization = authorizationOf(payload, handshake);
    if (authorization !== undefined) headers["authorization"] = authorization;
    return await new Promise((resolve, reject) => {
      const outgoing = post({
        createConnection: () => near as never,
        method: "POST",
        path: PATH,
        headers,
      });
      outgoing.once("response", (answer) => {
        answer.once("close", () => near.destroy());
        resolve(answer);
      });
      outgoing.once("error", reject);
      outgoing.end(body);
    });
  }

  const disposable = useServer(
    {
      connectionInitWaitTimeout: INIT_MS,
      onConnect: ({ extra: { socket } }) => {
        running.set(socket, { count: 0, idle: setTimeout(() => socket.close(1000, "Idle"), IDLE_MS) });
        socket.once("close", () => clearTimeout(running.get(socket)?.idle));
      },
      async onSubscribe({ connectionParams, extra: { request, socket } }, _id, payload) {
        const own = running.get(socket)!;
        if (own.count >= MOST_SUBSCRIPTIONS) return asked(tooMany);
        own.count += 1;
        clearTimeout(own.idle);
        const over = () => {
          own.count -= 1;
          if (own.count === 0) own.idle = setTimeout(() => socket.close(1000, "Idle"), IDLE_MS);
        };
        try {
          const answer = await send(request, connectionParams, bodyOf(payload));
          answer.once("close", over);
          const gone = () => answer.destroy();
          socket.once("close", gone);
          answer.once("close", () => socket.off("close", gone));
          return asked(answer);
        } catch {
          over();
          return asked(internal);
        }
      },
      subscribe: ({ contextValue }) => resultsOf(contextValue as IncomingMessage | Refused),
      // As they came: errors have been written already.
      onNext: (_context, _id, _payload, _args, result) => result as FormattedExecutionResult,
      onError: (_context, _id, _payload, errors) =>
        errors.flatMap(
          ({ originalError }) => (originalError instanceof Refused ? originalError : internal).errors,
        ),
      isProd: true,
    },
    sockets,
    PING_MS,
  );
  return {
    upgrade: (request, socket, head) =>
      sockets.handleUpgrade(request, socket, head, (client) => sockets.emit("connection", client, request)),
    close: async () => disposable.dispose(),
  };
}
