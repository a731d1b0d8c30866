import type { RequestHandler } from "express";
import type { Readiness } from "../monitoring/readiness.ts";

/** GET /healthz: whether the process is alive. Dependencies are not checked, since a restart would not fix them. */
export const healthz: RequestHandler = (_request, response) => {
  response.set("Cache-Control", "no-store").json({ status: "alive" });
};

/**
 * GET /readyz: 200 if every component works, otherwise 503. It names the component but not the cause, since the
 * endpoint is public.
 */
export function readyz(readiness: Readiness): RequestHandler {
  return async (_request, response) => {
    const { ready, ...report } = await readiness.report();
    response
      .status(ready ? 200 : 503)
      .set("Cache-Control", "no-store")
      .json({ status: ready ? "ready" : "unavailable", ...report });
  };
}
