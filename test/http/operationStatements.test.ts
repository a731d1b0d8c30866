/**
 * The SQL statements of an operation beside its response: for everyone in development, for operators in production,
 * and their contents.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { request } from "node:https";
import { startApi, type Api } from "../harness/api.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { programOf } from "../harness/world.ts";

let database: TestDatabase;
let development: Api;
let production: Api;
const tokens: Record<string, string | null> = { visitor: null };

/** Answer to a request for the statements of an operation. */
interface Told {
  answer?: { data?: any; errors?: any[] };
  statements?: { text: string; values?: unknown[]; ms: number; rows: number | null; plan?: string }[];
  more?: number;
  errors?: { message: string; extensions: Record<string, unknown> }[];
}

const send = (
  api: Api,
  who: string,
  body: object | string,
  { path = "/explorer/sql", method = "POST", headers = {} as Record<string, string> } = {},
): Promise<{ status: number; headers: Record<string, unknown>; content: Told; text: string }> =>
  new Promise((resolve, reject) => {
    const token = tokens[who];
    request(
      new URL(path, api.url),
      {
        method,
        agent: false,
        rejectUnauthorized: false,
        headers: {
          "content-type": "application/json",
          ...(token && { authorization: `Bearer ${token}` }),
          ...headers,
        },
      },
      (response) => {
        let text = "";
        response.on("data", (part) => (text += part));
        response.on("end", () =>
          resolve({
            status: response.statusCode!,
            headers: response.headers,
            content: text.startsWith("{") ? JSON.parse(text) : {},
            text,
          }),
        );
      },
    )
      .on("error", reject)
      .end(typeof body === "string" ? body : JSON.stringify(body));
  });

const signIn = async (email: string): Promise<string> =>
  (
    await development.anonymous.get("mutation ($input: LoginInput!) { login(input: $input) { token } }", {
      input: { username: email, password: "demo-password" },
    })
  ).login.token;

beforeAll(async () => {
  database = await createTestDatabase("demo");
  development = await startApi(database, { explorer: true });
  production = await startApi(database, { explorer: true, production: true });
  for (const [who, email] of Object.entries({
    owner: "demo@plat.example",
    admin: "amir@plat.example",
    member: "mei@plat.example",
    "other organization": "sofia@plat.example",
    buyer: "laura@plat.example",
  }))
    tokens[who] = await signIn(email);
  const owner = development.person(tokens["owner"]!);
  tokens["restricted token"] = (await programOf(development, owner, { scopes: ["lead.read"] })).token;
  const operator = await development.signUp("Opal Operator");
  await development.owner.query("select app_private.make_operator($1)", [operator.email]);
  tokens["operator"] = operator.token;
  tokens["token of an operator"] = (await programOf(development, operator, {})).token;
});
afterAll(async () => {
  await production?.stop();
  await development?.stop();
  await database?.drop();
});

const leads = "query Leads($first: Int!) { leads(first: $first) { id name } }";
const names = "{ publicProjects { title } }";

describe("in production", () => {
  test.each([
    "owner",
    "admin",
    "member",
    "other organization",
    "restricted token",
    "buyer",
    "token of an operator",
  ])("%s is refused, and nothing is executed", async (who) => {
    const { result, texts } = await production.statements(() =>
      send(production, who, { query: "mutation { logout(input: {}) { id } }" }),
    );
    expect([result.status, result.content]).toMatchObject([
      403,
      { errors: [{ extensions: { code: "FORBIDDEN" } }] },
    ]);
    expect(result.content.statements).toBeUndefined();
    expect(texts).toEqual([]);
    expect((await send(production, who, { query: names }, { path: "/graphql" })).status).toBe(200);
  });

  test("a visitor and an invalid token are refused", async () => {
    const visitor = await send(production, "visitor", { query: names });
    expect([visitor.status, visitor.content.errors![0]!.extensions.code]).toEqual([401, "UNAUTHENTICATED"]);
    const headers = { authorization: "Bearer nonsense" };
    expect((await send(production, "visitor", { query: names }, { headers })).status).toBe(401);
  });

  test("an operator gets the statements of an operation, which has the operator's own rights", async () => {
    const { status, headers, content } = await send(production, "operator", {
      query: leads,
      variables: { first: 5 },
    });
    expect([status, headers["cache-control"]]).toEqual([200, "no-store"]);
    expect(content.answer!.data.leads).toEqual([]);
    expect(content.statements).toMatchObject([{ rows: 0 }]);
  });

  test("an operator who was removed, or has signed out, is refused immediately", async () => {
    const former = await development.signUp("Fay Former");
    tokens["former"] = former.token;
    await development.owner.query("select app_private.make_operator($1)", [former.email]);
    expect((await send(production, "former", { query: names })).status).toBe(200);
    await development.owner.query("select app_private.end_operator($1)", [former.email]);
    expect((await send(production, "former", { query: names })).status).toBe(403);
    await development.owner.query("select app_private.make_operator($1)", [former.email]);
    await former.get("mutation { logout(input: {}) { id } }");
    expect((await send(production, "former", { query: names })).status).toBe(401);
  });

  test("the page offers the panel to operators only", async () => {
    const pageOf = async (api: Api) =>
      (await send(api, "visitor", "", { path: "/explorer", method: "GET" })).text;
    expect(await pageOf(production)).toContain('data-readers="operators" hidden');
    expect(await pageOf(development)).toContain('data-readers="everyone" hidden');
  });
});

describe("in development", () => {
  test.each(["owner", "member", "other organization", "restricted token", "buyer", "visitor", "operator"])(
    "%s gets the response of the API, with statements and values of their own request",
    async (who) => {
      const body = {
        query: `query ($first: Int!) { leads(first: $first) { id } publicProjects { title } }`,
        variables: { first: 7 },
      };
      const { content } = await send(development, who, body);
      const { content: plain } = await send(development, who, body, { path: "/graphql" });
      expect(content.answer!.data).toEqual((plain as Told["answer"])!.data);
      const codes = (answer: Told["answer"]) => answer!.errors?.map(({ extensions }) => extensions.code);
      expect(codes(content.answer)).toEqual(codes(plain as Told["answer"]));
      expect(content.statements!.length).toBeGreaterThan(0);
      for (const { text, ms, rows, plan } of content.statements!) {
        expect(text).toMatch(/^select/);
        expect(ms).toBeGreaterThan(0);
        expect(plan).toBeUndefined();
        expect(rows).not.toBeNull();
      }
      // No claims, settings or tokens.
      const text = JSON.stringify(content.statements);
      expect(text).not.toMatch(/set_config|access_of|stop_when_outdated|plat\.user_id/);
      expect(text).not.toContain(tokens[who] ?? "Bearer");
    },
  );

  test("a compiled query has the same statements as its plan", async () => {
    const body = { query: leads, variables: { first: 3 } };
    const runs = [];
    for (let run = 0; run < 4; run += 1) runs.push((await send(development, "owner", body)).content);
    const seen = runs.map(({ statements }) => statements!.map(({ text, rows }) => [text, rows]));
    expect(seen[0]).toMatchObject([[expect.stringMatching(/^select/), 3]]);
    expect(new Set(seen.map((one) => JSON.stringify(one))).size).toBe(1);
  });

  test("plans are returned on request, without executing the statement", async () => {
    const query = `mutation ($input: CreateLeadInput!) { createLead(input: $input) { id name } }`;
    const count = async () =>
      (await development.owner.query("select count(*)::int from app_public.leads")).rows[0].count;
    const before = await count();
    const input = { projectId: "larkfield-gardens", name: "Una Once", email: "una@example.com" };
    const { content } = await send(
      development,
      "owner",
      { query, variables: { input } },
      { path: "/explorer/sql?plans=true" },
    );
    expect(content.answer!.data.createLead.name).toBe("Una Once");
    expect(await count()).toBe(before + 1);
    expect(content.statements!.length).toBeGreaterThan(0);
    for (const { plan, values } of content.statements!) {
      expect(plan).toMatch(/\(cost=/);
      expect(plan).not.toMatch(/actual time|una@example\.com/);
      expect(values).toBeUndefined();
    }
  });

  test("secrets that a mutation creates are not among its statements", async () => {
    const query = `mutation { createAccessToken(input: { name: "Robot" }) { token } }`;
    const { content, text } = await send(development, "owner", { query });
    const { token } = content.answer!.data.createAccessToken;
    expect(text.split(token)).toHaveLength(2);
    expect(JSON.stringify(content.statements)).not.toMatch(/values/);
    const login = `mutation ($input: LoginInput!) { login(input: $input) { token } }`;
    const input = { username: "amir@plat.example", password: "demo-password" };
    const signedIn = await send(development, "visitor", { query: login, variables: { input } });
    expect(signedIn.content.answer!.data.login.token).toEqual(expect.any(String));
    expect(JSON.stringify(signedIn.content.statements)).not.toMatch(/demo-password|argon2/);
  });

  test("concurrent operations are separated", async () => {
    const requests = Array.from({ length: 12 }, (_, index) =>
      index % 2 === 0
        ? send(development, "owner", { query: leads, variables: { first: index + 1 } })
        : send(development, "member", { query: `{ units(first: ${index + 1}) { id } }` }),
    );
    for (const [index, { content }] of (await Promise.all(requests)).entries()) {
      expect(content.statements).toHaveLength(1);
      expect(content.statements![0]!.text).toContain(index % 2 === 0 ? "__leads__" : "__units__");
    }
  });

  test("the limits of operations apply, and refused ones have no statements", async () => {
    const aliases = Array.from({ length: 31 }, (_, index) => `a${index}: leads(first: 1) { id }`);
    const { content } = await send(development, "owner", { query: `{ ${aliases.join(" ")} }` });
    expect(content.answer!.errors![0].extensions.code).toBe("LIMIT_EXCEEDED");
    expect(content.statements).toEqual([]);
    expect((await send(development, "owner", "[]")).status).toBe(400);
    expect((await send(development, "owner", "", { method: "GET" })).status).toBe(405);
    expect(
      (await send(development, "owner", "x", { headers: { "content-type": "text/plain" } })).status,
    ).toBe(415);
    const subscription = await send(development, "owner", {
      query: `subscription { events(filter: { organizationId: "larkfield-homes" }) { name } }`,
    });
    expect(subscription.text).not.toContain('"statements":[{');
  });

  test("a refused statement is included, without the reason of the database", async () => {
    const query = `mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }`;
    const input = { projectId: "larkfield-gardens", name: "Una Twice", email: "una@example.com" };
    const { content } = await send(development, "owner", { query, variables: { input } });
    expect(content.answer!.errors![0].extensions.code).toBe("CONFLICT");
    expect(content.statements!.at(-1)).toMatchObject({ rows: null });
  });
});

test("without the portal, the route does not exist", async () => {
  const api = await startApi(database);
  try {
    expect((await send(api, "operator", { query: names })).status).toBe(404);
  } finally {
    await api.stop();
  }
});
