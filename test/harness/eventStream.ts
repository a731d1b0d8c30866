/** A reader of event streams, as specified for server-sent events. */
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";

export interface StreamMessage {
  /** Undefined if the message is an event. */
  event?: string;
  id?: string;
  data: any;
}

export interface OpenStream {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  /** Messages received so far, in order. */
  messages: StreamMessage[];
  /** Events received so far. */
  events: any[];
  /** The id of the last message that had one. */
  lastId: string | undefined;
  /** The last sequence number up to which the stream has reported to be complete. */
  position: number;
  /** The reason that the stream gave for its end. */
  end: any;
  /** The reconnection delay in milliseconds, as last sent. */
  retry: number | undefined;
  /** Comments received so far. */
  comments: number;
  isClosed: boolean;
  /** The body of a refusal. */
  refusal: any;
  /** Stops reading until `resume`. */
  pause(): void;
  resume(): void;
  close(): void;
}

const agent = new Agent({ keepAlive: false, rejectUnauthorized: false });

/**
 * Opens a stream; resolves when its headers have arrived.
 * @param address of the service, with any path
 */
export async function openStream(
  address: string,
  token: string | null,
  parameters: Record<string, string>,
  headers: Record<string, string> = {},
  localAddress?: string,
): Promise<OpenStream> {
  const url = new URL(`/events/stream?${new URLSearchParams(parameters)}`, address);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const outgoing = request(
      url,
      {
        agent,
        localAddress,
        headers: {
          accept: "text/event-stream",
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...headers,
        },
      },
      resolve,
    );
    outgoing.on("error", reject);
    outgoing.end();
  });
  const stream: OpenStream = {
    status: answer.statusCode!,
    headers: answer.headers,
    messages: [],
    events: [],
    lastId: undefined,
    position: -1,
    end: undefined,
    retry: undefined,
    comments: 0,
    isClosed: false,
    refusal: undefined,
    pause: () => void answer.pause(),
    resume: () => void answer.resume(),
    close: () => void answer.destroy(),
  };
  let text = "";
  answer.setEncoding("utf8");
  answer.on("error", () => {});
  answer.on("close", () => {
    stream.isClosed = true;
    if (stream.status !== 200 && text) stream.refusal = JSON.parse(text).errors[0];
  });
  answer.on("data", (part: string) => {
    text += part;
    if (stream.status !== 200) return;
    const blocks = text.split("\n\n");
    text = blocks.pop()!;
    for (const block of blocks) read(stream, block);
  });
  if (stream.status !== 200) await new Promise((resolve) => answer.once("close", resolve));
  return stream;
}

function read(stream: OpenStream, block: string): void {
  const message: StreamMessage = { data: undefined };
  let data: string | undefined;
  for (const line of block.split("\n")) {
    const [, field, value] = /^([^:]*): ?(.*)$/s.exec(line)!;
    if (field === "") stream.comments++;
    else if (field === "retry") stream.retry = Number(value);
    else if (field === "data") data = data === undefined ? value! : `${data}\n${value}`;
    else if (field === "event" || field === "id") message[field] = value!;
  }
  if (message.id !== undefined) stream.lastId = message.id;
  if (data === undefined) return;
  message.data = JSON.parse(data);
  stream.messages.push(message);
  if (message.event === undefined) stream.events.push(message.data);
  if (message.event === "complete") stream.position = Number(message.data.sequence);
  if (message.event === "end") stream.end = message.data;
}
