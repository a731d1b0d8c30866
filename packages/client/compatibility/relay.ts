import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import runtime from "relay-runtime";
import { possibleTypes } from "@plat/client/schema";
import { freshName, type Setting } from "./setting.ts";

const { commitMutation, Environment, fetchQuery, getRequest, Network, RecordSource, Store } = runtime as any;

export default async function relay({ url, token, projectId, schemaFile, folder }: Setting): Promise<string> {
  const program = join(folder, "relay");
  await mkdir(join(program, "src"), { recursive: true });
  await symlink(join(import.meta.dirname, "node_modules"), join(program, "node_modules"));
  await cp(join(import.meta.dirname, "relay"), join(program, "src"), { recursive: true });
  await cp(schemaFile, join(program, "schema.graphql"));
  await writeFile(join(program, "package.json"), '{ "type": "module" }');
  const config = {
    src: "./src",
    schema: "./schema.graphql",
    language: "javascript",
    eagerEsModules: true,
    artifactDirectory: "./made",
  };
  await mkdir(join(program, "made"));
  await writeFile(join(program, "relay.config.json"), JSON.stringify(config));
  await promisify(execFile)(
    join(import.meta.dirname, "node_modules/.bin/relay-compiler"),
    ["relay.config.json"],
    { cwd: program },
  );
  const artifact = async (name: string): Promise<any> =>
    ((await import(join(program, `made/${name}.graphql.js`))) as { default: unknown }).default;

  const nodes = new Set(possibleTypes["Node"]);
  const environment = new Environment({
    network: Network.create(async ({ text }: { text: string }, variables: unknown) => {
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
        body: JSON.stringify({ query: text, variables }),
      });
      return response.json();
    }),
    store: new Store(new RecordSource()),
    // An object that is not a node shares the id of another record, so its type is part of the key.
    getDataID: ({ id }: { id: string }, typeName: string) => (nodes.has(typeName) ? id : `${typeName}:${id}`),
  });
  const mutate = (mutation: unknown, input: unknown): Promise<any> =>
    new Promise((onCompleted, onError) =>
      commitMutation(environment, {
        mutation,
        variables: { input },
        onCompleted: (data: unknown, errors: unknown) => (errors ? onError(errors) : onCompleted(data)),
        onError,
      }),
    );
  const records = () => environment.getStore().getSource();

  const create = await artifact("operationsCreateLeadMutation");
  const name = freshName();
  await mutate(create, { projectId, name });
  const id = records()
    .getRecordIDs()
    .find((known: string) => records().get(known)?.name === name);
  assert.ok(id, "the lead is in the store under its id");

  const list = await artifact("operationsLeadsQuery");
  await fetchQuery(environment, list, { first: 2, filter: { projectIds: [projectId] } }).toPromise();
  const page = records()
    .getRecordIDs()
    .some((known: string) => known.includes("__operations_leadsConnection_connection"));
  assert.ok(page, "the connection is kept");

  // Another client has changed it; the refetch by node(id:) updates the same record.
  await mutate(await artifact("operationsUpdateLeadMutation"), { id, company: "Acme" });
  const refetch = await artifact("operationsLeadQuery");
  assert.match(getRequest(refetch).params.text, /node\(id: \$id\)/);
  await fetchQuery(environment, refetch, { id }, { fetchPolicy: "network-only" }).toPromise();
  assert.equal(records().get(id).company, "Acme");

  await mutate(await artifact("operationsDeleteLeadMutation"), { id });
  assert.equal(records().get(id) ?? null, null);
  return "compiler and runtime: `@connection`, `@refetchable` by `node(id:)`, `@deleteRecord`, one record for an id";
}
