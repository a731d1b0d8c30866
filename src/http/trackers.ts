import type { RequestHandler } from "express";
import type { Pool } from "pg";

/** What app_private.new_tracker_key makes; anything else is answered without asking the database. */
const keyFormat = /^[a-z2-9]{12}$/;

/** A transparent picture of one pixel. */
const pixel = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");

interface Hit {
  kind: string | null;
  destination: string | null;
  utm: Record<string, unknown> | null;
}

/** The destination with the tracker's parameters and its key as `tracker`; parameters that it has already stay. */
function destinationOf(hit: Hit, key: string): string {
  const url = new URL(hit.destination!);
  for (const [name, value] of Object.entries({ ...hit.utm, tracker: key }))
    if (["string", "number", "boolean"].includes(typeof value) && !url.searchParams.has(name))
      url.searchParams.set(name, String(value));
  return url.href;
}

/**
 * GET /t/:key: counts a hit of the tracker, in one statement, and leads on; a tracker of kind PIXEL answers with its picture.
 * HEAD leads on without counting, since those who ask so are programs. Passes on what is no active tracker, or leads nowhere.
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
