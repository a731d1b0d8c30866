import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A span in the JSON format of OTLP, with its attributes by name. */
export interface ReceivedSpan {
  name: string;
  kind: number;
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  attributes: Record<string, unknown>;
}

export interface Collector extends AsyncDisposable {
  url: string;
  /** All received spans. */
  spans: ReceivedSpan[];
  /** The names of the headers of each batch. */
  headers: string[][];
}

/** A real receiver of OTLP over HTTP. */
export async function startCollector(): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const headers: string[][] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (part: string) => (text += part));
    request.on("end", () => {
      if (request.url !== "/v1/traces" || request.headers["content-type"] !== "application/json")
        return response.writeHead(400).end();
      headers.push(Object.keys(request.headers));
      for (const { scopeSpans } of JSON.parse(text).resourceSpans)
        for (const { spans: found } of scopeSpans)
          for (const span of found)
            spans.push({
              ...span,
              parentSpanId: span.parentSpanId || undefined,
              attributes: Object.fromEntries(
                span.attributes.map(({ key, value }: any) => [key, Object.values(value)[0]]),
              ),
            });
      return response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    headers,
    [Symbol.asyncDispose]: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}
