/**
 * Requests over HTTPS with keep-alive, one at a time per connection. Written by hand, so that it takes little CPU
 * time.
 */
import { connect, type TLSSocket } from "node:tls";
import type { GraphqlRequest, Work } from "./works.ts";

/** Status and text of a response. */
interface Response {
  status: number;
  body: string;
}

/** One connection to a contestant. */
export class Line {
  readonly #socket: TLSSocket;
  readonly #head: string;
  #received: Buffer = Buffer.alloc(0);
  #waiting: { done(response: Response): void; fail(error: Error): void } | undefined;

  private constructor(socket: TLSSocket, path: string) {
    this.#socket = socket;
    this.#head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json\r\n`;
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    const fail = (error?: Error) => this.#waiting?.fail(error ?? new Error("The connection was closed."));
    socket.on("error", fail);
    socket.on("close", () => fail());
  }

  static async open(port: number, path = "/graphql"): Promise<Line> {
    const socket = connect({
      port,
      host: "127.0.0.1",
      rejectUnauthorized: false,
      ALPNProtocols: ["http/1.1"],
    });
    await new Promise<void>((done, fail) => socket.once("secureConnect", done).once("error", fail));
    socket.setNoDelay(true);
    return new Line(socket, path);
  }

  ask(asked: GraphqlRequest, token: string | undefined): Promise<Response> {
    const body = JSON.stringify(asked);
    const authorization = token === undefined ? "" : `Authorization: Bearer ${token}\r\n`;
    this.#socket.write(
      `${this.#head}${authorization}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    return new Promise((done, fail) => (this.#waiting = { done, fail }));
  }

  get isClosed(): boolean {
    return this.#socket.destroyed;
  }

  close(): void {
    this.#waiting = undefined;
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const end = this.#received.indexOf("\r\n\r\n");
    if (end < 0) return;
    const head = this.#received.toString("latin1", 0, end);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    const from = end + 4;
    let body: string;
    if (length !== undefined) {
      if (this.#received.length < from + Number(length)) return;
      body = this.#received.toString("utf8", from, from + Number(length));
    } else {
      // Chunked; an empty chunk is the end.
      if (!this.#received.subarray(from).toString("latin1").endsWith("0\r\n\r\n")) return;
      body = unchunked(this.#received.subarray(from));
    }
    const status = Number(head.slice(9, 12));
    this.#received = Buffer.alloc(0);
    const waiting = this.#waiting!;
    this.#waiting = undefined;
    waiting.done({ status, body });
  }
}

function unchunked(bytes: Buffer): string {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf("\r\n", at);
    const length = Number.parseInt(bytes.toString("latin1", at, end), 16);
    parts.push(bytes.subarray(end + 2, end + 2 + length));
    at = end + 2 + length + 2;
  }
  return Buffer.concat(parts).toString();
}

/** Returns the request of the nth piece of work, and its token. */
export type RequestOf = (work: Work, n: number) => { asked: GraphqlRequest; token: string | undefined };

/**
 * Executes one piece of work.
 * @returns the data of the response
 * @throws Error with the response if it has errors
 */
export async function runWork(line: Line, work: Work, n: number, asking: RequestOf): Promise<any> {
  const { asked, token } = asking(work, n);
  const data = await answerTo(line, asked, token);
  if (!work.then) return data;
  const { name, document, variables } = work.then;
  return answerTo(line, { query: document, operationName: name, variables: variables(data) }, token);
}

async function answerTo(line: Line, asked: GraphqlRequest, token: string | undefined): Promise<any> {
  const { status, body } = await line.ask(asked, token);
  if (status !== 200 || body.startsWith('{"errors"') || body.includes(',"errors":['))
    throw new Error(`${asked.operationName} was answered ${status}: ${body.slice(0, 2000)}`);
  return JSON.parse(body).data;
}

/**
 * Keeps all connections busy for a time.
 * @returns milliseconds of each successful piece of work, and in total; the failures, by message
 */
export async function load(
  lines: readonly Line[],
  works: readonly Work[],
  seconds: number,
  asking: RequestOf,
  from: number,
  /** Maximum number of pieces of work, if the time does not end before. */
  most = Infinity,
): Promise<{ took: number[]; elapsed: number; count: number; failures: string[] }> {
  const took: number[] = [];
  const failures: string[] = [];
  let n = from;
  const start = performance.now();
  const end = start + seconds * 1000;
  await Promise.all(
    lines.map(async (line) => {
      do {
        const work = works[n % works.length]!;
        const began = performance.now();
        try {
          await runWork(line, work, n++, asking);
          took.push(performance.now() - began);
        } catch (error) {
          failures.push((error as Error).message);
          // After an error response, the connection can be used again; after a broken connection, it cannot.
          if (line.isClosed) throw error;
        }
      } while (performance.now() < end && n - from < most);
    }),
  );
  return { took, elapsed: performance.now() - start, count: n - from, failures };
}
