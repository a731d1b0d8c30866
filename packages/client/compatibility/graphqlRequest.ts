import assert from "node:assert/strict";
import { ClientError, GraphQLClient } from "graphql-request";
import { createLeadMutation, projectsQuery } from "@plat/client/documents";
import { freshName, type Setting } from "./setting.ts";

export default async function graphqlRequest({ url, token, projectId }: Setting): Promise<string> {
  const client = new GraphQLClient(url, { headers: { authorization: `Bearer ${token}` } });
  const { projects } = await client.request<any>(String(projectsQuery), { first: 1 });
  assert.equal(projects.length, 1);
  const name = freshName();
  const key = { "idempotency-key": crypto.randomUUID() };
  const send = () => client.rawRequest<any>(String(createLeadMutation), { input: { projectId, name } }, key);
  const [first, again] = [await send(), await send()];
  assert.deepEqual(again.data, first.data);
  assert.equal(again.headers.get("idempotency-replayed"), "true");
  const bad = await client.request("{ nothing }").catch((error) => error);
  assert.ok(bad instanceof ClientError);
  assert.equal((bad.response.errors![0]!.extensions as { code: string }).code, "BAD_USER_INPUT");
  const stranger = new GraphQLClient(url, { headers: { authorization: "Bearer no.such.token" } });
  const refused = await stranger.request("{ viewer { id } }").catch((error) => error);
  assert.ok(refused instanceof ClientError);
  assert.equal(refused.response.status, 401);
  assert.equal((refused.response.errors![0]!.extensions as { code: string }).code, "UNAUTHENTICATED");
  return "queries, mutations with idempotency keys, headers of the answer, errors by code, 401 with its code";
}
