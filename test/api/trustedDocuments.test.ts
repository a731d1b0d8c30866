/**
 * Registered documents, requested by their ids: registered by a command, answered like sent documents, and the only
 * ones allowed if the operator configures that.
 */
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { buildSchema, parse, validate } from "postgraphile/graphql";
import { ownDocuments } from "../../src/http/ownDocuments.ts";
import { startApi, type Answer, type Api, type Person } from "../harness/api.ts";
import { fullPages } from "../harness/fullPages.ts";
import { multipartBody, picture, sendRaw } from "../harness/upload.ts";
import { runToExit } from "../harness/service.ts";

let api: Api;
let closed: Api;
let olive: Person;
let folder: string;

const idOf = (text: string) => `sha256:${createHash("sha256").update(text).digest("hex")}`;
const register = async (id: string, text: string) =>
  (await api.owner.query("select app_private.register_document($1, $2) as added", [id, text])).rows[0].added;
const ask = (body: object, { token }: { token: string | null } = olive, to = api) =>
  to.post(JSON.stringify(body), {
    "content-type": "application/json",
    ...(token && { authorization: `Bearer ${token}` }),
  });
/** The response without the cost, which depends on the connection, and the request id. */
const partsOf = ({ status, data, errors }: Answer) =>
  JSON.stringify([status, data, errors], (key, value) => (key === "requestId" ? undefined : value));
const viewer = "query Viewer { viewer { id firstName } }";

beforeAll(async () => {
  api = await startApi();
  olive = await api.signUp("Olive Owner");
  closed = await startApi(api.database, { trustedDocumentsOnly: true });
  folder = await mkdtemp(join(tmpdir(), "plat-documents-"));
});
afterAll(async () => {
  await closed.stop();
  await api.stop();
  await rm(folder, { recursive: true });
});

const command = () =>
  runToExit({ entry: "src/cli/documents.ts", args: [folder], env: { DATABASE_URL: api.database.ownerUrl } });

test("a command registers the documents of a folder, all or none, and prints their ids", async () => {
  await writeFile(join(folder, "viewer.graphql"), viewer);
  await writeFile(join(folder, "more.json"), JSON.stringify({ abc: "query Named { viewer { firstName } }" }));
  const first = await command();
  expect({ ...first, stdout: JSON.parse(first.stdout) }).toMatchObject({
    code: 0,
    stdout: { "viewer.graphql": idOf(viewer) },
    stderr: "2 documents, 2 of them new.\n",
  });
  await writeFile(join(folder, "wrong.graphql"), "{ viewer { shoeSize } }");
  await writeFile(join(folder, "new.graphql"), "{ viewer { lastName } }");
  expect(await command()).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^wrong\.graphql, .*shoeSize/),
  });
  await writeFile(join(folder, "wrong.graphql"), "{ viewer { id } }");
  await writeFile(join(folder, "more.json"), JSON.stringify({ abc: "{ viewer { id } }" }));
  expect(await command()).toMatchObject({
    code: 1,
    stderr: "more.json: the id abc is already the id of another document; use a new id.\n",
  });
  const { rows } = await api.owner.query("select id from app_private.documents order by id");
  expect(rows.map(({ id }) => id)).toEqual(["abc", idOf(viewer)]);
  expect((await ask({ documentId: "abc" })).data).toEqual({ viewer: { firstName: "Olive" } });
});

test("a request by id has the response of the document, which is looked up once", async () => {
  for (const [title, text] of Object.entries({ ...fullPages, viewer })) {
    const id = idOf(text);
    await register(id, text);
    const variables = { project: "00000000-0000-0000-0000-000000000000" };
    const given = text.includes("$project") ? { variables } : {};
    const sent = partsOf(await ask({ query: text, ...given }));
    const { result, texts } = await api.statements(() => ask({ documentId: id, ...given }));
    expect({ title, sent: partsOf(result) }).toEqual({ title, sent });
    const again = await api.statements(() => ask({ documentId: id, ...given }));
    expect(again.texts).toEqual(texts);
    expect(partsOf(await ask({ documentId: id, ...given }, api.anonymous))).toEqual(
      partsOf(await ask({ query: text, ...given }, api.anonymous)),
    );
  }
});

test("an unknown id is refused with a code, in any format; so are an id and a text together", async () => {
  for (const documentId of ["nothing", "", "a b", "x".repeat(10_000), "é"])
    expect(await ask({ documentId })).toMatchObject({
      status: 404,
      errors: [{ extensions: { code: "NOT_FOUND", field: "documentId" } }],
    });
  for (const documentId of [7, {}, ["abc"]])
    expect(await ask({ documentId })).toMatchObject({
      status: 400,
      errors: [{ extensions: { code: "BAD_USER_INPUT", field: "documentId" } }],
    });
  expect(await ask({ documentId: "abc", query: viewer })).toMatchObject({
    status: 400,
    errors: [
      { message: "Send either query or documentId, not both.", extensions: { code: "BAD_USER_INPUT" } },
    ],
  });
});

test("a refused id works once it is registered, and never changes its document", async () => {
  expect((await ask({ documentId: "later" })).status).toBe(404);
  expect(await register("later", viewer)).toBe(true);
  expect((await ask({ documentId: "later" })).data).toEqual({ viewer: { id: olive.id, firstName: "Olive" } });
  expect(await register("later", "{ viewer { lastName } }")).toBeNull();
  expect(await register("later", viewer)).toBe(false);
});

test("if only registered documents are permitted, all others are refused for everybody", async () => {
  await register(idOf(viewer), viewer);
  for (const person of [olive, api.anonymous])
    for (const query of [viewer, "{ __typename }", "not GraphQL"])
      expect(await ask({ query }, person, closed)).toMatchObject({
        status: 403,
        data: undefined,
        errors: [{ extensions: { code: "FORBIDDEN", field: "query" } }],
      });
  expect((await ask({ documentId: idOf(viewer) }, olive, closed)).data.viewer).toEqual({
    id: olive.id,
    firstName: "Olive",
  });
});

test("files can be uploaded with an id too", async () => {
  const { createOrganization } = await olive.get(
    `mutation { createOrganization(input: { name: "Bright Side" }) { id } }`,
  );
  const upload =
    "mutation Change($input: UploadOrganizationAvatarInput!) { uploadOrganizationAvatar(input: $input) { id filemime } }";
  await register(idOf(upload), upload);
  const input = { organizationId: createOrganization.id, file: null };
  const { body, type } = multipartBody(
    idOf(upload),
    { input },
    { "variables.input.file": { bytes: await picture() } },
  );
  const byId = Buffer.from(body.toString("latin1").replace('{"query":', '{"documentId":'), "latin1");
  const answer = await sendRaw(closed, olive, { body: byId, type });
  expect(answer).toMatchObject({
    errors: undefined,
    data: { uploadOrganizationAvatar: { filemime: "image/png" } },
  });
});

test("the table is only readable through the function, and visitors cannot register", async () => {
  const client = await api.owner.connect();
  try {
    for (const role of ["plat_anonymous", "plat_user", "plat_worker"])
      for (const text of [
        "select * from app_private.documents",
        "select app_private.document_text('abc')",
        "select app_private.register_document('x', '{ viewer { id } }')",
      ]) {
        await client.query("begin");
        await client.query(`set local role ${role}`);
        await expect(client.query(text)).rejects.toMatchObject({ code: "42501" });
        await client.query("rollback");
      }
  } finally {
    client.release();
  }
});

test("documents of the service's own pages need not be registered", async () => {
  const schema = buildSchema(await readFile(join(import.meta.dirname, "../../schema.graphql"), "utf8"));
  const paula = await api.signUp("Paula Portal");
  for (const [documentId, text] of ownDocuments) {
    expect({ documentId, errors: validate(schema, parse(text)) }).toEqual({ documentId, errors: [] });
    const { errors = [] } = await ask({ documentId }, paula, closed);
    // Some fail for lack of variables, and one signs her out.
    expect(errors.filter(({ extensions }) => ["documentId", "query"].includes(extensions.field))).toEqual([]);
  }
  expect((await ask({ documentId: "portal:Viewer" }, olive, closed)).data.viewer.id).toBe(olive.id);
  const [schemaOf] = Object.values((await ask({ documentId: "portal:Schema" }, olive, closed)).data) as any[];
  expect(schemaOf.types.length).toBeGreaterThan(100);
});
