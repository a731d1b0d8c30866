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
  /** Gives the columns `object` and `write`; may use the tables of snapshot.ts. */
  query: string;
}
