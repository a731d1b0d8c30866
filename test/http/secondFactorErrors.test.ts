/**
 * Messages for members whom an organization refuses for lack of a second factor;
 * test/api/requiredSecondFactor.test.ts tests the rules.
 */
import { expect, test } from "@jest/globals";
import { parse, type OperationDefinitionNode } from "graphql";
import { CodedError } from "../../src/base/errors.ts";
import { secondFactorErrors, withReason } from "../../src/http/secondFactorErrors.ts";

const reason = "ORGANIZATION_REQUIRES_SECOND_FACTOR";
const message =
  "Your organization requires a second factor; set one up with enrollSecondFactor and confirmSecondFactor to see its data.";
const all = { userId: "u", secondFactorWithholds: "ALL" } as const;
const some = { userId: "u", secondFactorWithholds: "SOME" } as const;

test.each([undefined, { userId: "u" }])("claims %j change no error", (claims) => {
  const error = new CodedError("NOT_FOUND", "Gone.");
  expect(withReason(error, claims)).toBe(error);
});

test.each([
  ["NOT_FOUND", all, message],
  ["NOT_FOUND", some, message],
  ["FORBIDDEN", all, message],
  ["FORBIDDEN", some, "Said."],
] as const)("%s to %j gets the reason", (code, claims, expected) => {
  const error = new CodedError(code, "Said.", { field: "id" });
  const changed = withReason(error, claims);
  expect(changed).toMatchObject({
    code: "FORBIDDEN",
    message: expected,
    extensions: { field: "id", reason },
    cause: error,
  });
});

test("an error of another kind, or with a reason of its own, is unchanged", () => {
  for (const error of [
    new CodedError("CONFLICT", "Said."),
    new CodedError("FORBIDDEN", "Said.", { reason: "ELSE" }),
  ])
    expect(withReason(error, all)).toBe(error);
});

function answered(
  query: string,
  data: Record<string, unknown>,
  claims: Parameters<typeof withReason>[1],
  refused: string[] = [],
) {
  const document = parse(query);
  const { selectionSet } = document.definitions[0] as OperationDefinitionNode;
  const errors = secondFactorErrors(data, new Set(refused), document, selectionSet, claims);
  return { data, errors };
}

test("each field of a query that found nothing is refused, under its own name in the response", () => {
  const found = answered(
    "{ lead(id: 1) { id } one: project(id: 1) { id } units { id } }",
    { lead: null, one: null, units: [{ id: 1 }] },
    all,
  );
  expect(found.errors.map((error) => error.toJSON())).toEqual([
    { message, path: ["lead"], extensions: { reason, code: "FORBIDDEN" } },
    { message, path: ["one"], extensions: { reason, code: "FORBIDDEN" } },
  ]);
});

test.each([
  [[], true],
  [[1], false],
  [{ nodes: [] }, true],
  [{ edges: [] }, true],
  [{ nodes: [1] }, false],
  [{ nodes: [1], edges: [] }, true],
  [{ totalCount: 0 }, true],
  [{ totalCount: 1 }, false],
  [{ id: 1 }, false],
  ["text", false],
  [0, false],
])("%j counts as empty: %j, if all organizations refuse", (value, isNothing) => {
  const found = answered("{ leads { id } }", { leads: value }, all);
  expect([found.data["leads"], found.errors.length]).toEqual(isNothing ? [null, 1] : [value, 0]);
  // If other organizations do not refuse, a list may be empty.
  const others = answered("{ leads { id } }", { leads: value }, some);
  expect([others.data["leads"], others.errors.length]).toEqual([value, 0]);
});

test("even then, a record that is not found is refused", () => {
  expect(answered("{ lead(id: 1) { id } }", { lead: null }, some).errors).toHaveLength(1);
});

test("no error is added if no access is withheld, for fields with an error, or for data that belong to no organization", () => {
  expect(answered("{ lead { id } }", { lead: null }, { userId: "u" }).errors).toEqual([]);
  expect(answered("{ lead { id } }", { lead: null }, undefined).errors).toEqual([]);
  expect(answered("{ a: lead { id } }", { a: null }, all, ["a"]).errors).toEqual([]);
  const anybodys = ["viewer", "nearestCity", "publicProjects", "user", "__schema", "__type"];
  const data = Object.fromEntries(anybodys.map((name) => [name, null]));
  expect(answered(`{ ${anybodys.join(" ")} }`, data, all).errors).toEqual([]);
  // By the name of the field, not its alias.
  expect(answered("{ viewer: lead { id } }", { viewer: null }, all).errors).toHaveLength(1);
});

test("fields are found through fragments, each of which is visited once", () => {
  const found = answered(
    `query { ... { lead { id } } ...A ...A }
     fragment A on Query { project { id } ...B }
     fragment B on Query { unit { id } ...A ...Missing }
     fragment C on Query { other { id } }`,
    { lead: null, project: null, unit: null, other: null },
    all,
  );
  expect(found.errors.map(({ path }) => path)).toEqual([["lead"], ["project"], ["unit"]]);
});
