import { createServer } from "node:http";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import { baseUrl } from "./api.ts";

/**
 * Forwards plain HTTP from a free port to a service with a self-signed certificate, and adds the given headers if they
 * are not sent.
 */
export async function startPlainProxy(
  target: string,
  headers: Record<string, string> = {},
): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer((incoming, response) => {
    const { host, connection: _, ...given } = incoming.headers;
    // Pages at the address of the proxy are those of the service.
    if (given.origin === `http://${host}` && /^127\.0\.0\.1:/.test(host!)) given.origin = baseUrl;
    const outgoing = request(
      new URL(incoming.url!, target),
      { method: incoming.method, headers: { ...headers, ...given }, rejectUnauthorized: false, agent: false },
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      },
    );
    outgoing.on("error", () => response.destroy());
    incoming.pipe(outgoing);
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
