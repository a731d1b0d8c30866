/** Which parts of a list are sent to the database. */
import { expect, test } from "@jest/globals";
import type { SetName } from "../../src/database/handedAccess.ts";
import { withUsedBranches } from "../../src/database/usedBranches.ts";

const part = (set: SetName, text: string, permission = "lead.read") =>
  `/* if ${set} */ ${text} in "app_hidden"."${set}"('${permission}') /* end if */`;
const [ofOrganizations, ofProjects, own] = [
  part("viewer_organizations", "select 1 where a = $1"),
  part("viewer_projects", "select 2 where a = $1 union all select 3"),
  part("viewer_own_projects", "select 4 where a = $1"),
];
const list = (...parts: string[]) => `select * from (${parts.join(" union all ")}) u`;
const whole = list(ofOrganizations!, ofProjects!, own!);

/** Access with the sets of a permission. */
const access = (sets: string, permission = "lead.read") => ({
  "plat.access": `,audit.read=2,${permission}=1,`,
  "plat.access_": "{}|{}|{}|{}|{}",
  "plat.access_1": sets,
  "plat.access_2": "{x}|{x}|{x}|{x}|{x}",
});

test.each([
  ["of organizations", access("{a}|{}|{}|{}|{}"), list(ofOrganizations!), "100"],
  ["of projects, and of own records", access("{}|{b}|{c}|{}|{}"), list(ofProjects!, own!), "011"],
  ["of own records", access("{}|{}|{c}|{}|{}"), list(own!), "001"],
])("the parts %s", (_title, given, text, form) => {
  expect(withUsedBranches(whole, given)).toEqual({ text, form });
  expect(withUsedBranches(whole, given)).toEqual({ text, form });
});

test.each([
  ["all sets have members", whole, access("{a}|{b}|{c}|{}|{}")],
  ["the access is not known", whole, undefined],
  ["no access is handed on", whole, { "plat.access": "" }],
  ["the sets of the permission are not handed on", whole, { "plat.access": ",lead.read=9," }],
  ["no part would be left", whole, access("{}|{}|{}|{}|{}")],
  ["the permission has no sets", whole, access("{a}|{}|{}|{}|{}", "unit.read")],
  [
    "a parameter would be unused",
    list(ofOrganizations!, part("viewer_projects", "select $2")),
    access("{a}|{}|{}|{}|{}"),
  ],
  ["there are no such parts", "select 1", access("{}|{}|{}|{}|{}")],
])("all parts if %s", (_title, text, given) => {
  expect(withUsedBranches(text, given)).toEqual({ text, form: "" });
});

test("a part that nothing depends on stays", () => {
  const text = list("select 0 where a = $1", own!);
  expect(withUsedBranches(text, access("{a}|{}|{}|{}|{}"))).toEqual({
    text: list("select 0 where a = $1"),
    form: "0",
  });
});

test("parts of several permissions", () => {
  const other = part("viewer_organizations", "select 5 where a = $1", "unit.read");
  expect(withUsedBranches(list(ofOrganizations!, other), access("{a}|{}|{}|{}|{}"))).toEqual({
    text: list(ofOrganizations!),
    form: "10",
  });
});
