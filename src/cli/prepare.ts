import { prepare } from "../database/migrate.ts";

/** Called by graphile-migrate after a reset (see .gmrc): creates what migrations expect in an empty database. */
const connectionString = process.env.GM_DBURL;
if (!connectionString)
  throw new Error("GM_DBURL is not set; this command is for graphile-migrate's afterReset.");
await prepare(connectionString);
