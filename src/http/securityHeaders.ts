import type { ServerResponse } from "node:http";
import type { RequestHandler } from "express";

/**
 * Headers of every response. The content security policy forbids everything, since responses are data; pages replace it
 * with a policy of their own. HSTS applies for one year, without subdomains, which may belong to others.
 */
export function setSecurityHeaders(response: ServerResponse, isSecure: boolean): void {
  response.setHeader("Cache-Control", "no-store");
  response.setHeader("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  response.setHeader("Cross-Origin-Opener-Policy", "same-origin");
  response.setHeader("Referrer-Policy", "no-referrer");
  response.setHeader("X-Content-Type-Options", "nosniff");
  response.setHeader("X-Frame-Options", "DENY");
  if (isSecure) response.setHeader("Strict-Transport-Security", "max-age=31536000");
}

/** See {@link setSecurityHeaders}. */
export const securityHeaders: RequestHandler = (request, response, next) => {
  setSecurityHeaders(response, request.secure);
  next();
};
