/**
 * The limit of Node: an HTTPS server that answers every request with 304 and the headers of the service, and does
 * nothing else.
 */
import { createServer } from "node:https";
import { listen, settings } from "../peers/serve.ts";

await listen(
  createServer(settings.tls, (_request, response) => {
    response.writeHead(304, {
      ETag: '"0123456789abcdef0123456789abcdef"',
      "Cache-Control": "private, no-cache",
      Vary: "Accept, Accept-Encoding, Accept-Language, Authorization",
    });
    response.end();
  }),
);
