import type { Rule } from "./rule.ts";

/** Principals of everything that acts after the request that created it. */
export const principalRules: Rule[] = [
  {
    name: "principal",
    why: "Delayed actions on behalf of a user outlive the user's permissions, and the token that created them.",
    // By the columns for a request to act later; who did something (uploaded, approved, paused) is another matter.
    query: `
      select c.object, format('Declare with \`app_private.make_principal(''%s'', ''%s'', …)\` on whose behalf its rows act, beside a column '
        'principal_token_id; or, if nothing acts on its behalf later, write \`@inert …\` into the comment of the column with the reason.', c.schema, c.table_name) as write
      from columns c
      where c.name ~ '^(created|requested|started|connected|invited|enabled|scheduled|issued|registered|subscribed)_by_id$'
        and coalesce(pg_temp.tag(c.comment, 'inert'), '') = ''
        and not exists (select from app_private.principal_tables p where p.table_name::regclass = c.table_oid)`,
  },
  {
    name: "principal-token",
    why: "A reference to an access token without a review remains when the token ends.",
    query: `
      select k.object || '.' || k.name as object,
        format('Declare \`app_private.make_principal(''%s'', ''%s'', …)\`, which ends its rows with their token.', k.schema, k.table_name) as write
      from foreign_keys k
      where k.referenced = 'app_public.access_tokens' and k.table_name not in ('access_tokens', 'access_token_secrets')
        and not exists (select from app_private.principal_tables p where p.table_name::regclass = k.table_oid)`,
  },
];
