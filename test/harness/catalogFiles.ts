/** Files with facts about the database of a migrated data folder, stored beside it. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { introspectionQuery } from "../../src/schema/introspectionQuery.ts";

/** The results also depend on the queries. */
const question = createHash("sha256").update(introspectionQuery([]).text).digest("hex").slice(0, 12);

/** The state of its catalog. */
export const stateFile = (migrated: string): string => join(migrated, "catalog.state");
/** The results of the queries that build the GraphQL schema. */
export const readingFile = (migrated: string): string => join(migrated, `catalog-${question}.json`);
