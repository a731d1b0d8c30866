import type { ClientBase } from "pg";

/** One thing that a rule found, and the sentence that says what to write. */
export interface Finding {
  rule: string;
  /** What it is about, such as `app_public.leads` or `migrations/objects/leads.sql:12`. */
  object: string;
  write: string;
}

/** A rule over the catalog of a migrated database. */
export interface Rule {
  name: string;
  /** Why it holds, for whoever wonders whether to write an exception. */
  why: string;
  /** Gives the columns `object` and `write`; may use the views of views.ts. */
  query: string;
}

/** What the rules look at beside the catalog. */
export interface Surroundings {
  client: ClientBase;
  /** Every word of the TypeScript sources, of the crontab and of the calls in migrations/: a function named there is called. */
  words: ReadonlySet<string>;
}

/** A rule that SQL alone cannot say. */
export interface CodeRule {
  name: string;
  why: string;
  find(surroundings: Surroundings): Promise<Omit<Finding, "rule">[]>;
}
