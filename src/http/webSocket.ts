/**
 * GraphQL subscriptions over WebSocket, with the protocol graphql-transport-ws.
 *
 * A subscription becomes a POST to /graphql inside this process, and its server-sent events become messages. Tokens,
 * limits, registered documents, revocation and slow clients are therefore handled by the same code as for HTTP. Queries
 * and mutations are refused.
 */
import { createServer, type IncomingMessage, request as post, type RequestListener } from "node:http";
import { type Duplex, duplexPair } from "node:stream";
import { text } from "node:stream/consumers";
import { makeServer, type Server } from "graphql-ws";
import {
  type ExecutionArgs,
  type FormattedExecutionResult,
  type GraphQLFormattedError,
  GraphQLSchema,
  parse,
} from "postgraphile/graphql";
import { type WebSocket, WebSocketServer } from "ws";
import { internalMessage } from "../base/errors.ts";
import { forwardedFor } from "./forwardedFor.ts";
import { markOfWebSocket } from "./webSocketRequests.ts";
import { handleInTurn } from "./webSocketTurns.ts";

const PROTOCOL = "graphql-transport-ws";
const PATH = "/graphql";
/**
 * Bytes of a message. A message is in memory before anything is known of its sender, on thousands of connections:
 * longer documents are registered, or sent by POST.
 */
const MESSAGE_BYTES = 64_000;
/** The same before connection_init, which has a token. */
const FIRST_BYTES = 8_000;
/**
 * Bytes written that the client has not read, from which on nothing of it is read, as a message can have an answer of
 * its length; and milliseconds that it has to read them.
 */
const MOST_UNREAD = 256_000;
const READ_MS = 10_000;
/** Milliseconds that a client has to send connection_init, and that a connection may be without a subscription. */
const INIT_MS = 10_000;
const IDLE_MS = 65_000;
/** Milliseconds between two pings; a client that has not answered the last one is disconnected. */
const PING_MS = 15_000;
/** Pings and pongs that a client may send between two of ours, and frames of a message. */
const MOST_CONTROL_FRAMES = 100;
const MOST_FRAGMENTS = 64;
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

/** Whether a request opens a WebSocket of this service. Other upgrade requests are answered as plain requests. */
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

/** The data of `next` events. */
async function* readResults(answer: IncomingMessage | Refused, isOver: () => boolean): AsyncGenerator<never> {
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
  } catch (error) {
    if (!isOver()) throw error;
  } finally {
    answer.destroy();
  }
}

/**
 * Results of a subscription. `return()` of a generator has no effect while it has not started or waits for the next
 * event, so it would continue to occupy a stream; this object ends at once.
 * @throws Refused
 */
function resultsOf(answer: IncomingMessage | Refused): AsyncGenerator<never> {
  let isOver = false;
  const results = readResults(answer, () => isOver);
  const end = results.return.bind(results);
  results.return = (value) => {
    isOver = true;
    if (!(answer instanceof Refused)) answer.destroy();
    return end(value);
  };
  return results;
}

/** The body of the request. A registered document has its id as `documentId`, with an empty `query`: the protocol requires one. */
function bodyOf(payload: object): string {
  const { query, ...others } = payload as { query: string; documentId?: unknown };
  return JSON.stringify(query === "" && others.documentId !== undefined ? others : payload);
}

/** The arguments of the library for every operation, which it neither parses nor executes. */
const SUBSCRIPTION = parse("subscription { anything }");
const noSchema = new GraphQLSchema({});
const executionOf = (contextValue: IncomingMessage | Refused): ExecutionArgs => ({
  schema: noSchema,
  document: SUBSCRIPTION,
  contextValue,
});

/** Resolves to true once a client has read most of what was written, and to false if it does not. */
async function isRead(client: WebSocket, { socket }: IncomingMessage, within: number): Promise<boolean> {
  if (client.bufferedAmount <= MOST_UNREAD) return true;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const [drained, ended] = [() => resolve(true), () => resolve(false)];
  const late = setTimeout(ended, within);
  socket.once("drain", drained).once("close", ended);
  try {
    return await promise;
  } finally {
    clearTimeout(late);
    socket.off("drain", drained).off("close", ended);
  }
}

/**
 * Reads the messages of a client one by one, each in its turn among those of all clients, and only as fast as the
 * client reads the responses.
 * @param handle begins to answer a message
 * @param isGreeted whether connection_init was received
 */
function readMessages(
  client: WebSocket,
  request: IncomingMessage,
  {
    handle,
    isGreeted,
    readWithinMs,
    address,
  }: {
    handle(message: string): void;
    isGreeted(): boolean;
    readWithinMs: number;
    address: string | undefined;
  },
): void {
  /** Messages that had arrived together with others. */
  const arrived: string[] = [];
  let isReading = false;
  const take = (data: Buffer): void => {
    if (client.readyState !== client.OPEN) return;
    arrived.push(data.toString());
    if (!isReading) read().catch(() => client.terminate());
  };
  const read = async () => {
    isReading = true;
    client.pause();
    for (let message = arrived.shift(); message !== undefined; message = arrived.shift()) {
      if (client.readyState !== client.OPEN) break;
      if (!isGreeted() && message.length > FIRST_BYTES) {
        client.close(1009, "Send a short connection_init first");
        break;
      }
      const { length } = message;
      await handleInTurn(address, length, () => {
        if (client.readyState === client.OPEN) handle(message);
      });
      if (!(await isRead(client, request, readWithinMs))) return client.terminate();
    }
    isReading = false;
    // Also if it is closing: the last message says that the other side closes, too.
    client.resume();
  };
  client.on("message", take);
  client.on("ping", (data: Buffer) => {
    if (client.readyState === client.OPEN && client.bufferedAmount <= MOST_UNREAD) client.pong(data);
  });
}

/** Disconnects a client that is gone, or sends control frames all the time. */
function keepAlive(client: WebSocket): void {
  let isAlive = true;
  let frames = 0;
  const count = () => {
    if (++frames === MOST_CONTROL_FRAMES) client.close(1008, "Too many pings");
    if (frames > MOST_CONTROL_FRAMES) client.terminate();
  };
  client.on("ping", count).on("pong", () => {
    isAlive = true;
    count();
  });
  const beat = setInterval(() => {
    if (!isAlive) return client.terminate();
    isAlive = false;
    frames = 0;
    client.ping();
  }, PING_MS);
  client.once("close", () => clearInterval(beat));
}

/** A connection and its handshake. */
interface Connected {
  readonly socket: WebSocket;
  readonly request: IncomingMessage;
}

export interface WebSockets {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Closes all connections, with 1001. */
  close(): Promise<void>;
}

/** Sends operations as requests of the clients of handshakes. */
function requestsTo(app: RequestListener) {
  const server = createServer(app);
  return async function send(
    { socket: client, request: handshake }: Connected,
    authorization: string | undefined,
    body: string,
  ): Promise<IncomingMessage> {
    const [near, far] = duplexPair();
    const gone = () => near.destroy();
    client.once("close", gone);
    near.once("close", () => client.off("close", gone));
    const { remoteAddress, encrypted } = handshake.socket as IncomingMessage["socket"] & { encrypted?: true };
    Object.assign(far, { remoteAddress, encrypted });
    // In the other direction, the stream ends when everything was read.
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
  };
}

/** Speaks the protocol on a connection. */
function converse(
  { socket, request }: Connected,
  protocol: Server<Connected>,
  options: { isGreeted(): boolean; readWithinMs: number; address: string | undefined },
): void {
  // A message that is too long, or no message; the library has closed the connection.
  socket.on("error", () => {});
  // Each subscription waits for the end.
  socket.setMaxListeners(MOST_SUBSCRIPTIONS + 10);
  keepAlive(socket);
  let handle: (message: string) => Promise<void> = async () => {};
  const closed = protocol.opened(
    {
      protocol: socket.protocol,
      send: (data) =>
        new Promise((resolve, reject) => {
          if (socket.readyState !== socket.OPEN) return resolve();
          socket.send(data, (error) => (error ? reject(error) : resolve()));
        }),
      close: (code, reason) => socket.close(code, reason),
      onMessage: (answer) => void (handle = answer),
    },
    { socket, request },
  );
  readMessages(socket, request, {
    ...options,
    handle: (message) => void handle(message).catch(() => socket.close(1011, "Internal error")),
  });
  socket.once("close", (code: number, reason: Buffer) => {
    closed(code, reason.toString()).catch(() => {});
  });
}

/**
 * @param app answers the subscriptions
 * @param readWithinMs milliseconds that a client has to read its answers
 * @param isProxy whether an address is a proxy, whose clients take turns
 */
export function webSockets(
  app: RequestListener,
  readWithinMs = READ_MS,
  isProxy: (address: string) => boolean = () => false,
): WebSockets {
  const send = requestsTo(app);
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MESSAGE_BYTES,
    perMessageDeflate: false,
    // See readMessages.
    autoPong: false,
    // Of all frames that have arrived, one per connection and iteration of the event loop, even without content.
    allowSynchronousEvents: false,
    maxFragments: MOST_FRAGMENTS,
    // Without it the client is disconnected by the library, with 4406.
    handleProtocols: (protocols) => (protocols.has(PROTOCOL) ? PROTOCOL : false),
  });
  /** Requests of connections that run, by connection, and their token. */
  const running = new WeakMap<
    object,
    { count: number; idle: NodeJS.Timeout | undefined; authorization: string | undefined }
  >();

  const protocol = makeServer<Record<string, unknown>, Connected>({
    connectionInitWaitTimeout: INIT_MS,
    onConnect(context) {
      const { socket, request } = context.extra;
      running.set(socket, {
        count: 0,
        idle: setTimeout(() => socket.close(1000, "Idle"), IDLE_MS),
        authorization: authorizationOf(context.connectionParams, request),
      });
      socket.once("close", () => clearTimeout(running.get(socket)?.idle));
      // The rest is not kept for as long as the connection.
      Reflect.deleteProperty(context, "connectionParams");
    },
    async onSubscribe({ extra }, _id, payload) {
      const { socket } = extra;
      const own = running.get(socket)!;
      const body = bodyOf(payload);
      // It is kept for as long as the subscription.
      Object.assign(payload, { query: "", variables: undefined, extensions: undefined });
      if (own.count >= MOST_SUBSCRIPTIONS) return executionOf(tooMany);
      own.count += 1;
      clearTimeout(own.idle);
      const over = () => {
        own.count -= 1;
        if (own.count === 0 && socket.readyState === socket.OPEN)
          own.idle = setTimeout(() => socket.close(1000, "Idle"), IDLE_MS);
      };
      try {
        const answer = await send(extra, own.authorization, body);
        answer.once("close", over);
        return executionOf(answer);
      } catch {
        over();
        return executionOf(internal);
      }
    },
    subscribe: ({ contextValue }) => resultsOf(contextValue as IncomingMessage | Refused),
    // Unchanged: errors have been serialized already.
    onNext: (_context, _id, _payload, _args, result) => result as FormattedExecutionResult,
    onError: (_context, _id, _payload, errors) =>
      errors.flatMap(
        ({ originalError }) => (originalError instanceof Refused ? originalError : internal).errors,
      ),
  });
  sockets.on("connection", (socket: WebSocket, request: IncomingMessage) =>
    converse({ socket, request }, protocol, {
      isGreeted: () => running.has(socket),
      readWithinMs,
      address: forwardedFor(request, isProxy),
    }),
  );
  return {
    upgrade: (request, socket, head) =>
      sockets.handleUpgrade(request, socket, head, (client) => sockets.emit("connection", client, request)),
    async close() {
      for (const client of sockets.clients) client.close(1001, "Going away");
      await new Promise<void>((resolve) => sockets.close(() => resolve()));
    },
  };
}
