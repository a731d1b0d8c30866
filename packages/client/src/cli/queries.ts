/** Operations of several commands. */
import type { TypedDocument } from "../index.ts";

/** A document of the command line client, with the types of its result and variables. */
export const operation = <Result, Variables = object>(text: string): TypedDocument<Result, Variables> =>
  text as unknown as TypedDocument<Result, Variables>;

export interface OwnOrganization {
  role: string;
  organization: { id: string; slug: string; name: string } | null;
}

export const ORGANIZATIONS = operation<{
  viewer: {
    id: string;
    email: string | null;
    fullName: string;
    username: string;
    isOperator: boolean;
    organizations: OwnOrganization[];
  } | null;
}>(
  "{ viewer { id email fullName username isOperator organizations { role organization { id slug name } } } }",
);

export const ORGANIZATION = operation<{ organization: { id: string; slug: string } | null }, { id: string }>(
  "query ($id: ID!) { organization(id: $id) { id slug } }",
);
