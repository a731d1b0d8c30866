/** A finding of a rule, with a sentence that says what to write. */
export interface Finding {
  rule: string;
  /** Its object, such as `app_public.leads` or `migrations/objects/leads.sql:12`. */
  object: string;
  write: string;
}

/** A rule over the catalog of a migrated database. */
export interface Rule {
  name: string;
  /** The reason for the rule, for the decision about an exception. */
  why: string;
  /** Returns the columns `object` and `write`; may use the tables of snapshot.ts. */
  query: string;
}
