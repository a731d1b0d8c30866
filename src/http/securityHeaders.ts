import type { RequestHandler } from "express";

/**
 * Headers of every response. The policy forbids everything, since responses are data; pages replace it with their
 * own. HSTS for one year, without subdomains, which are not ours to decide about.
 */
export const securityHeaders: RequestHandler = (request, response, next) => {
  response.setHeader("Cache-Control", "no-store");
  response.setHeader("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  response.setHeader("Cross-Origin-Opener-Policy", "same-origin");
  response.setHeader("Referrer-Policy", "no-referrer");
  response.setHeader("X-Content-Type-Options", "nosniff");
  response.setHeader("X-Frame-Options", "DENY");
  if (request.secure) response.setHeader("Strict-Transport-Security", "max-age=31536000");
  next();
};
