/** What is kept of a migrated folder's database, beside it. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { introspectionQuery } from "../../src/schema/introspectionQuery.ts";

/** The answers also depend on what is asked. */
const question = createHash("sha256").update(introspectionQuery([]).text).digest("hex").slice(0, 12);

/** The state of its catalog. */
export const stateFile = (migrated: string): string => join(migrated, "catalog.state");
/** What it answered while the schema was built. */
export const readingFile = (migrated: string): string => join(migrated, `catalog-${question}.json`);
