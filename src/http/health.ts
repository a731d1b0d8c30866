import type { RequestHandler } from "express";
import type { Readiness } from "../monitoring/readiness.ts";

/** GET /healthz: the process is alive; it says nothing about what it depends on, or a restart would be the cure. */
export const healthz: RequestHandler = (_request, response) => {
  response.set("Cache-Control", "no-store").json({ status: "alive" });
};

/** GET /readyz: 200 when every part works, 503 otherwise; which part, but not why, since anybody may ask. */
export function readyz(readiness: Readiness): RequestHandler {
  return async (_request, response) => {
    const { ready, ...report } = await readiness.report();
    response
      .status(ready ? 200 : 503)
      .set("Cache-Control", "no-store")
      .json({ status: ready ? "ready" : "unavailable", ...report });
  };
}
