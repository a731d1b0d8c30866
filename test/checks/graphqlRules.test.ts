/** The rules of graphql-eslint for a schema, and their waivers. */
import { expect, test } from "@jest/globals";
import { checkGraphqlRules } from "../../src/checks/graphqlRules.ts";

const schema = (query: string) => `"""All."""
type Query {
  "A lead."
${query}
}

"A lead."
type Lead implements Node {
  id: ID!
  leadSource: String
  leadName: String
}

"A record."
interface Node {
  id: ID!
}
`;

test("reports violations except for waived ones, and waivers without a violation", () => {
  const faults = checkGraphqlRules(schema("  getLead: Lead"));
  const found = faults.filter((one) => one.startsWith("schema.graphql"));
  expect(found).toContainEqual(expect.stringMatching(/^schema.graphql:4: Query: Field "getLead"/));
  expect(found).toContainEqual(expect.stringMatching(/^schema.graphql:11: Lead: Field "leadName"/));
  expect(found.join("\n")).not.toContain("leadSource");
  const unused = faults.filter((one) => one.startsWith("Remove the waiver "));
  expect(unused).toHaveLength(faults.length - found.length);
  expect(unused.join("\n")).toContain("username");
  expect(unused.join("\n")).not.toContain("leadSource");
});
