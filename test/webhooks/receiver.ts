import { createServer, type Server } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { until } from "../harness/until.ts";
import { testCertificate } from "../harness/certificate.ts";

export interface Message {
  path: string;
  id: string;
  /** In the format of standardwebhooks. */
  headers: Record<string, string>;
  text: string;
  /** The body, parsed. */
  event: any;
}

type Answer = (message: Message, response: ServerResponse, request: IncomingMessage) => void;

export interface Receiver {
  url: string;
  /** All received messages, in order. */
  messages: Message[];
  /** Sets the responses from now on; 204 at first. */
  answers(answer: Answer): void;
  /** Waits for a message after those that `next` has returned. */
  next(): Promise<Message>;
  close(): Promise<void>;
}

export const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (_message, response) =>
    response.writeHead(code, headers).end(`answer ${code}`);

/** A real HTTPS server that stores what it receives. */
export async function startReceiver(): Promise<Receiver> {
  const { cert, key } = await testCertificate();
  const messages: Message[] = [];
  let answer: Answer = status(204);
  let given = 0;
  const server: Server = createServer({ cert, key }, (request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (part: string) => (text += part));
    request.on("end", () => {
      const message: Message = {
        path: request.url!,
        id: String(request.headers["webhook-id"]),
        headers: request.headers as Record<string, string>,
        text,
        event: JSON.parse(text),
      };
      messages.push(message);
      answer(message, response, request);
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}`,
    messages,
    answers: (next) => (answer = next),
    async next() {
      await until(() => messages.length > given);
      return messages[given++]!;
    },
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}
