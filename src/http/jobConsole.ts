import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Router } from "express";
import { onlyMethods } from "./onlyMethods.ts";

/** Allows only the page's own files and this server's API; no inline scripts. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const files = {
  "/jobs": ["page.html", "html"],
  "/jobs/console.js": ["console.js", "text/javascript"],
  "/jobs/console.css": ["console.css", "css"],
} as const;

/** The job console at `/jobs`: static files without data. Users sign in there, and the API decides what they see. */
export function jobConsole(): Router {
  const router = Router({ strict: true, caseSensitive: true });
  for (const [path, [file, type]] of Object.entries(files)) {
    const text = readFileSync(join(import.meta.dirname, "jobConsole", file), "utf8");
    router.all(path, onlyMethods("GET", "HEAD"), (_request, response) => {
      response.setHeader("Content-Security-Policy", policy);
      response.type(type).send(text);
    });
  }
  return router;
}
