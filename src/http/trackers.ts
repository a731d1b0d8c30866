import type { RequestHandler } from "express";
import type { Pool } from "pg";

/** Format of app_private.new_tracker_key; anything else is answered without a query. */
const keyFormat = /^[a-z2-9]{12}$/;

/** A transparent image of one pixel. */
const pixel = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");

interface Hit {
  kind: string | null;
  destination: string | null;
  utm: Record<string, unknown> | null;
}

/** The destination with the tracker's parameters and its key as `tracker`; existing parameters are kept. */
function destinationOf(hit: Hit, key: string): string {
  const url = new URL(hit.destination!);
  for (const [name, value] of Object.entries({ ...hit.utm, tracker: key }))
    if (["string", "number", "boolean"].includes(typeof value) && !url.searchParams.has(name))
      url.searchParams.set(name, String(value));
  return url.href;
}

/**
 * GET /t/:key: counts a hit of the tracker, in one statement, and redirects; a tracker of kind PIXEL returns its
 * image. HEAD redirects without counting, since it is used by programs. Falls through if there is no active tracker
 * or destination.
 */
export function trackers(pool: Pick<Pool, "query">): RequestHandler<{ key: string }> {
  return async (request, response, next) => {
    const { key } = request.params;
    if (!keyFormat.test(key)) return next();
    const { rows } = await pool.query<Hit>({
      name: "hit_tracker",
      text: "select kind, destination, utm from app_private.hit_tracker($1, $2)",
      values: [key, request.method === "GET"],
    });
    const hit = rows[0];
    if (hit?.kind === "PIXEL") return void response.type("gif").send(pixel);
    if (!hit?.destination || !URL.canParse(hit.destination)) return next();
    response.status(302).setHeader("Location", destinationOf(hit, key)).end();
  };
}
