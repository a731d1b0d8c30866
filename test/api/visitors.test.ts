/** Every operation without a token. Policies and grants determine what is public; these lists document the result. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  buildSchema,
  getNamedType,
  getNullableType,
  type GraphQLError,
  type GraphQLField,
  type GraphQLInputType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isListType,
  isObjectType,
  type GraphQLNamedType,
  isRequiredArgument,
  isRequiredInputField,
  isScalarType,
} from "graphql";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { startApi, type Api } from "../harness/api.ts";

const schema = buildSchema(readFileSync(join(import.meta.dirname, "../../schema.graphql"), "utf8"));

let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

const scalars: Record<string, unknown> = {
  ID: "01890000-0000-7000-8000-000000000000",
  Int: 1,
  Float: 1,
  Boolean: true,
  String: "text",
  BigInt: "1",
  Decimal: "1.00",
  DateTime: "2026-11-21T12:00:00Z",
  Date: "2026-11-21",
  JSON: {},
  URL: "https://example.com/",
  EmailAddress: "visitor@example.com",
  PhoneNumber: "+14165550123",
  Upload: "data:text/csv;base64,VW5pdA==",
  CurrencyCode: "CAD",
  CountryCode: "CA",
  TimeZone: "America/Toronto",
};

/** A valid value of the type; for an object, only required fields. */
function valueOf(type: GraphQLInputType): unknown {
  const nullable = getNullableType(type);
  if (isListType(nullable)) return [valueOf(nullable.ofType as GraphQLInputType)];
  if (isEnumType(nullable)) return nullable.getValues()[0]!.name;
  if (isInputObjectType(nullable))
    return Object.fromEntries(
      Object.values(nullable.getFields())
        .filter(isRequiredInputField)
        .map((field) => [field.name, valueOf(field.type)]),
    );
  if (isScalarType(nullable) && !Object.hasOwn(scalars, nullable.name)) return "text";
  return scalars[nullable.name];
}

/**
 * The shortest selection that reads data; the type name of a connection alone reads nothing, and is permitted
 * to everybody.
 */
function selectionOf(type: GraphQLNamedType): string {
  if (!isCompositeType(type)) return "";
  return isObjectType(type) && "totalCount" in type.getFields() ? " { totalCount }" : " { __typename }";
}

/** The shortest document with the field. */
function documentOf(
  kind: "query" | "mutation",
  field: GraphQLField<unknown, unknown>,
): { query: string; variables: Record<string, unknown> } {
  const required = field.args.filter(isRequiredArgument);
  const given = required.map(({ name, type }) => `$${name}: ${type}`).join(", ");
  const passed = required.map(({ name }) => `${name}: $${name}`).join(", ");
  return {
    query: `${kind} ${given && `(${given})`} { ${field.name}${passed && `(${passed})`}${selectionOf(getNamedType(field.type))} }`,
    variables: Object.fromEntries(required.map(({ name, type }) => [name, valueOf(type)])),
  };
}

/**
 * The outcome for a visitor: the code of the refusal, or "answered"; for a refusal that does not say how to
 * sign in, its message.
 */
async function outcomeOf(kind: "query" | "mutation", field: GraphQLField<unknown, unknown>): Promise<string> {
  const { query, variables } = documentOf(kind, field);
  const { data, errors } = await api.anonymous.ask(query, variables);
  if (!errors) return "answered";
  expect(data?.[field.name] ?? null).toBeNull();
  const [{ extensions, message }] = errors as [GraphQLError];
  const isHelpful = extensions.code !== "UNAUTHENTICATED" || /header/.test(message);
  return isHelpful ? String(extensions.code) : message;
}

async function allTold(kind: "query" | "mutation", fields: GraphQLField<unknown, unknown>[]) {
  const result: Record<string, string[]> = {};
  for (const field of fields) (result[await outcomeOf(kind, field)] ??= []).push(field.name);
  return result;
}

test("queries that are never public are refused for lack of a token, without a statement", async () => {
  const { result, texts } = await api.statements(() =>
    allTold("query", Object.values(schema.getQueryType()!.getFields())),
  );
  const { UNAUTHENTICATED: refused, answered, ...others } = result;
  // Refused because of the value: the token of a link permits reading the document to sign.
  expect(others).toEqual({ BAD_USER_INPUT: ["signingRequest"] });
  expect(answered).toEqual([
    "depositScheduleMilestone",
    "floorPlan",
    "floorPlanDocument",
    "floorPlanDrawing",
    "floorPlanElevationImage",
    "floorPlanImage",
    "lot",
    "lotImage",
    "nearestCity",
    "node",
    "nodes",
    "openHouse",
    "organization",
    "organizationAvatar",
    "project",
    "projectAvatar",
    "projectCollection",
    "projectDocument",
    "projectImage",
    "projectTestimonial",
    "promotion",
    "publicProject",
    "publicProjects",
    "recentlySoldUnits",
    "salesOffice",
    "search",
    "sitePlan",
    "specCategory",
    "specElement",
    "specOption",
    "unit",
    "unitImage",
    "units",
    "unitsConnection",
    "viewer",
  ]);
  expect(refused).toEqual(
    expect.arrayContaining([
      "leads",
      "lead",
      "buyers",
      "reservations",
      "offers",
      "events",
      "projects",
      "user",
    ]),
  );
  expect(texts.length).toBeLessThanOrEqual(answered!.length + 1);
});

test("a missing token is an error, not an empty list, also beside public fields and in fragments", async () => {
  const { data, errors } = await api.anonymous.ask("{ publicProjects { id } leads { id } viewer { id } }");
  expect(data).toEqual({ publicProjects: [], leads: null, viewer: null });
  expect(errors).toEqual([
    expect.objectContaining({
      path: ["leads"],
      message: expect.stringMatching(/^leads requires a token/),
      extensions: expect.objectContaining({ code: "UNAUTHENTICATED" }),
    }),
  ]);
  const aliased = await api.anonymous.ask(
    "query { ...f viewer { id } } fragment f on Query { a: leads { id } b: events { id } }",
  );
  expect(aliased.errors!.map(({ path }) => path)).toEqual([["a"], ["b"]]);
  for (const selection of [
    "totalCount",
    "nodes { id }",
    "aggregates { distinctCount { id } }",
    "pageInfo { hasNextPage }",
  ]) {
    const query = `{ leadsConnection { ${selection} } }`;
    expect(await api.anonymous.refused(query)).toMatchObject({ code: "UNAUTHENTICATED" });
  }
  const ada = await api.signUp("Ada Alone");
  expect(await ada.get("{ leads { id } events { id } projects { id } }")).toEqual({
    leads: [],
    events: [],
    projects: [],
  });
});

test("an invisible record by id is reported like an unknown one", async () => {
  const ask = (id: string) => api.anonymous.refused("query ($id: ID!) { lead(id: $id) { id } }", { id });
  const { requestId: _1, ...unknown } = await ask(scalars.ID as string);
  const { requestId: _2, ...wrong } = await ask("no-id");
  expect(unknown).toEqual(wrong);
  expect(unknown.code).toBe("UNAUTHENTICATED");
});

test("mutations require a token, except for signing up and in, and contact forms", async () => {
  const { UNAUTHENTICATED: refused, ...others } = await allTold(
    "mutation",
    Object.values(schema.getMutationType()!.getFields()),
  );
  // Refused because the given records do not exist, or answered.
  expect(others).toEqual({
    answered: ["contactService", "createUserOtp"],
    BAD_USER_INPUT: [
      "createAccount",
      "declineAgreement",
      "requestSigningCode",
      "resetPassword",
      "signAgreement",
    ],
    NOT_FOUND: ["contactOrganization", "contactProject"],
    "Not a valid refresh token; sign in again.": ["refreshSession"],
    "The user name and the password do not match an account that can sign in.": ["login"],
  });
  expect(refused).toEqual(expect.arrayContaining(["createLead", "updatePassword"]));
  expect(refused!.length).toBeGreaterThan(200);
});
