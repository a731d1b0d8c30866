import { expect, test } from "@jest/globals";
import { createLog } from "../../src/base/log.ts";

function logged(fields: object, message = "x"): string {
  let text = "";
  createLog("info", { write: (line) => void (text += line) }).info({ event: "job.log", ...fields }, message);
  expect(JSON.parse(text)).toMatchObject({ level: "info", service: "plat" });
  return text;
}

test.each([
  ["a header", { req: { headers: { authorization: "Bearer sesame.a-b" } } }],
  ["a cookie", { headers: { "set-cookie": "sesame" } }],
  ["a password, deep inside", { a: { b: [{ input: { newPassword: 'se"sesame' } }] } }],
  ["a token", { accessToken: "sesame", token: "sesame" }],
  ["a credential in a text", { text: "sent Authorization: Bearer sesame" }],
  [
    "a row's values in a database error",
    { err: Object.assign(new Error("duplicate"), { detail: "(name)=(sesame)" }) },
  ],
  ["an address in an error", { err: new Error("connect postgres://plat:sesame@host/db failed") }],
])("%s is not logged", (_what, fields) => {
  expect(logged(fields)).not.toContain("sesame");
});

test("other fields are logged unchanged", () => {
  expect(JSON.parse(logged({ path: "/graphql", address: "https://localhost:8443/a@b" }))).toMatchObject({
    path: "/graphql",
    address: "https://localhost:8443/a@b",
  });
});
