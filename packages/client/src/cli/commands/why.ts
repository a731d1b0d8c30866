import { type Command, UsageError } from "../command.ts";
import { operation } from "../queries.ts";

const MEMBERS = operation<
  {
    organization: {
      members: { user: { id: string; email: string | null; fullName: string } | null }[];
    } | null;
  },
  { id: string }
>("query ($id: ID!) { organization(id: $id) { members { user { id email fullName } } } }");

const EXPLAIN = operation<
  {
    explainAccess: {
      isVisible: boolean;
      reason: string;
      roles: string[];
      permissions: string[];
      missingPermissions: string[];
      mayUpdate: boolean;
      mayDelete: boolean;
      isFieldVisible: boolean | null;
    } | null;
  },
  { organizationId: string; userId: string; type: string; id: string; field: string | null }
>(`query ($organizationId: ID!, $userId: ID!, $type: String!, $id: ID!, $field: String) {
  explainAccess(organizationId: $organizationId, userId: $userId, type: $type, id: $id, field: $field) {
    isVisible reason roles permissions missingPermissions mayUpdate mayDelete isFieldVisible
  }
}`);

const REASONS: Readonly<Record<string, string>> = {
  PERMISSION: "their role has the permission for all such records",
  OWN_RECORD: "it is assigned to them",
  PERSONAL: "it is about them",
  PUBLIC: "everybody sees it",
  NOT_ASSIGNED: "it is not assigned to them, and their role reaches own records only",
  PERMISSION_MISSING: "none of their roles has the permission",
  SECOND_FACTOR_MISSING: "the organization requires a second factor, which they lack",
  NO_PART: "they are a member neither of the organization nor of one affiliated with the project",
};

const idFormat = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export const why: Command = {
  name: "why",
  summary: "Explain why a person sees a record or does not",
  usage: "USER TYPE ID [FIELD]",
  details:
    "USER is the email address of a member, or the id of any person who has a part in the organization. TYPE is a type of the schema, such as Lead. With FIELD, it also says whether the person can read its value. For admins of the organization.",
  examples: [
    "plat why mei@example.com Lead 0198c2de-…",
    "plat why mei@example.com Unit 0198c2de-… floorPrice",
  ],
  async run(context) {
    const { positionals, out } = context;
    const [person, type, id, field] = positionals;
    if (!person || !type || !id) throw new UsageError("Say whom and what: USER TYPE ID [FIELD].");
    const organizationId = await context.organization();
    const client = await context.connect();
    let userId = person;
    if (!idFormat.test(person)) {
      const { organization } = await client.request(MEMBERS, { id: organizationId });
      const found = organization?.members.find(
        ({ user }) => user?.email?.toLowerCase() === person.toLowerCase(),
      );
      if (!found?.user)
        throw new UsageError(`No member has the email address ${person}; give the id instead.`);
      userId = found.user.id;
    }
    const variables = { organizationId, userId, type, id, field: field ?? null };
    const { explainAccess: found } = await client.request(EXPLAIN, variables);
    if (!found || out.json) return out.data(found);
    out.line(`${found.isVisible ? "Visible" : "Not visible"}: ${REASONS[found.reason] ?? found.reason}.`);
    out.line(`Roles: ${found.roles.join(", ") || "none"}`);
    out.line(`Permissions: ${found.permissions.join(", ") || "none"}`);
    if (!found.isVisible && found.missingPermissions.length > 0)
      out.line(`Any of these would show it: ${found.missingPermissions.join(", ")}`);
    if (found.isVisible)
      out.line(`Change: ${found.mayUpdate ? "yes" : "no"}, delete: ${found.mayDelete ? "yes" : "no"}`);
    if (field)
      out.line(
        found.isFieldVisible === null
          ? `${field}: empty, or hidden from you too`
          : `${field}: ${found.isFieldVisible ? "visible" : "hidden"}`,
      );
  },
};
