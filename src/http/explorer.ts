import { createHash } from "node:crypto";
import { Router, type RequestHandler } from "express";
import type { Grafserv } from "./grafserv.ts";
import { onlyMethods } from "./onlyMethods.ts";

/** Inline scripts by their hashes: the page has some, and nothing that was injected would match one. */
function policyFor(html: string): string {
  const scripts = [...html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>([\s\S]*?)<\/script>/g)];
  const hashes = scripts.map(
    ([, text = ""]) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`,
  );
  return [
    "default-src 'none'",
    `script-src 'self' ${hashes.join(" ")}`,
    "style-src 'self' 'unsafe-inline'",
    "font-src 'self' data:",
    "img-src 'self' data:",
    "connect-src 'self'",
    "worker-src 'self' blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

function serve(grafserv: Grafserv): RequestHandler {
  return async (request, response, next) => {
    const isPage = request.path === grafserv.explorerPath;
    // The policy needs the page's own text, so the page comes uncompressed; it is small.
    const result = await grafserv.answerExplorer(request, response, !isPage);
    if (!result || result.type === "error" || result.statusCode === 404) return next();
    if (result.type === "noContent") return void response.writeHead(result.statusCode, result.headers).end();
    if (result.type !== "buffer") return next();
    if (isPage) response.setHeader("Content-Security-Policy", policyFor(result.buffer.toString("utf8")));
    else response.setHeader("Cache-Control", "public, max-age=3600");
    response
      .writeHead(result.statusCode, result.headers)
      .end(request.method === "HEAD" ? undefined : result.buffer);
  };
}

/** The explorer page at `/` and its assets, all from this server: no other host is asked, and the policy allows none. */
export function explorer(grafserv: Grafserv): Router {
  const router = Router();
  const handler = serve(grafserv);
  router.all("/", onlyMethods("GET", "HEAD"), handler);
  router.all("/ruru-static/*file", onlyMethods("GET", "HEAD"), handler);
  return router;
}
